"""nltk.metrics: how far texts are apart."""

from ....inert import others
from . import distance
from .distance import edit_distance

__all__ = ["distance", "edit_distance"]
__getattr__ = others(__name__)
