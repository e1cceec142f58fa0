"""ogb: its graphs with the widths, classes and tasks of the real ones, and values by the run's seed."""

from __future__ import annotations

from ...inert import others

__version__ = "1.3.6"
__getattr__ = others(__name__)
