"""Batches of graphs."""

from __future__ import annotations

from ...inert import others
from .data import DataListLoader, DataLoader

__all__ = ["DataListLoader", "DataLoader"]
__getattr__ = others(__name__)
