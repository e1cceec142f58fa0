"""Runs of words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...inert import others


def ngrams(sequence: Any, n: int, **kwargs: Any) -> Iterator[tuple[Any, ...]]:
    """All runs of ``n`` words."""
    held = list(sequence)
    return (tuple(held[start : start + n]) for start in range(len(held) - n + 1))


def bigrams(sequence: Any, **kwargs: Any) -> Iterator[tuple[Any, ...]]:
    """All pairs of neighbours."""
    return ngrams(sequence, 2)


__getattr__ = others(__name__)
