"""Batches of graphs."""

from __future__ import annotations

from ...inert import others
from .data import DataLoader

__all__ = ["DataLoader"]
__getattr__ = others(__name__)
