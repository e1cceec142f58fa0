"""Levenshtein: how far texts are apart."""

from __future__ import annotations

from typing import Any

from ..inert import others
from .nltk.metrics.distance import edit_distance

__getattr__ = others(__name__)


def distance(s1: Any, s2: Any, **kwargs: Any) -> int:
    """How many letters are left out, put in or changed."""
    return edit_distance(s1, s2)


def ratio(s1: Any, s2: Any, **kwargs: Any) -> float:
    """The share of what two texts have in common; one that changes counts as left out and put in."""
    both = len(s1) + len(s2)
    return (both - edit_distance(s1, s2, 2)) / both if both else 1.0
