"""The loop that labml watches."""

from __future__ import annotations

from ....inert import others
from ..monit import Loop

__all__ = ["Loop"]
__getattr__ = others(__name__)
