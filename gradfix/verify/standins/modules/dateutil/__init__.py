"""dateutil: zones of time."""

from . import tz

__all__ = ["tz"]
