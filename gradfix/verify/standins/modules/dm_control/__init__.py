"""dm_control: bodies that move, with the sizes of the real ones."""

from __future__ import annotations

from ...inert import others

__getattr__ = others(__name__)
