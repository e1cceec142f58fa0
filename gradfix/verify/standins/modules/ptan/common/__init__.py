"""What goes with agents."""

from ....inert import others
from . import utils, wrappers

__all__ = ["utils", "wrappers"]
__getattr__ = others(__name__)
