"""jiwer: shares of words and letters that are wrong."""

from __future__ import annotations

from typing import Any

from ..inert import others
from .nltk.metrics.distance import edit_distance

__getattr__ = others(__name__)


def _share(truth: Any, said: Any, parts: Any) -> float:
    pairs = [(truth, said)] if isinstance(truth, str) else list(zip(truth, said))
    count = sum(len(parts(one)) for one, _ in pairs)
    return sum(edit_distance(parts(one), parts(other)) for one, other in pairs) / max(1, count)


def wer(reference: Any = None, hypothesis: Any = None, *args: Any, **kwargs: Any) -> float:
    """The share of words."""
    return _share(kwargs.get("truth", reference), hypothesis, str.split)


def cer(reference: Any = None, hypothesis: Any = None, *args: Any, **kwargs: Any) -> float:
    """The share of letters."""
    return _share(kwargs.get("truth", reference), hypothesis, list)
