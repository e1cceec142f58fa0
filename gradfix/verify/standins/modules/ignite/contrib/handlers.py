"""What shows progress."""

from ..handlers import Handler as ProgressBar
from ..handlers import __getattr__

__all__ = ["ProgressBar", "__getattr__"]
