"""Where settings of labml are defined."""

from __future__ import annotations

from .....inert import others

__getattr__ = others(__name__)
