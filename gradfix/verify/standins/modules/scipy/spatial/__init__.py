"""Distances."""

from ....inert import others
from . import distance

__all__ = ["distance"]
__getattr__ = others(__name__)
