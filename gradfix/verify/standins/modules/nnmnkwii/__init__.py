"""nnmnkwii: sets of features by the script's own functions."""

from ...inert import others
from . import datasets, preprocessing

__all__ = ["datasets", "preprocessing"]
__getattr__ = others(__name__)
