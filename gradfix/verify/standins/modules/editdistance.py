"""editdistance: how far texts are apart."""

from __future__ import annotations

from typing import Any

from .nltk.metrics.distance import edit_distance


def eval(a: Any, b: Any) -> int:
    """How many letters, or words, are left out, put in or changed."""
    return edit_distance(a, b)


distance = eval
