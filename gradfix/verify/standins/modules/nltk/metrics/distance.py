"""nltk.metrics.distance: how far texts are apart."""

from __future__ import annotations

from typing import Any

from ....inert import others

__getattr__ = others(__name__)


def edit_distance(s1: Any, s2: Any, substitution_cost: int = 1, transpositions: bool = False) -> int:
    """How many letters are left out, put in or changed."""
    above = list(range(len(s2) + 1))
    for number, one in enumerate(s1, 1):
        row = [number]
        for place, other in enumerate(s2, 1):
            changed = above[place - 1] + (substitution_cost if one != other else 0)
            row.append(min(above[place] + 1, row[-1] + 1, changed))
        above = row
    return above[-1]


def jaccard_distance(label1: Any, label2: Any) -> float:
    """The share that two sets do not have in common."""
    both = label1 | label2
    return (len(both) - len(label1 & label2)) / len(both)
