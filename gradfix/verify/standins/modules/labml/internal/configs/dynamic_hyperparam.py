"""Settings that somebody may change while a run lasts."""

from __future__ import annotations

from .....inert import others
from ...configs import DynamicHyperParam, FloatDynamicHyperParam, IntDynamicHyperParam

__all__ = ["DynamicHyperParam", "FloatDynamicHyperParam", "IntDynamicHyperParam"]
__getattr__ = others(__name__)
