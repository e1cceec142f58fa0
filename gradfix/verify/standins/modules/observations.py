"""observations: the corpora among its data sets, each as one text for each part."""

from __future__ import annotations

from typing import Any

from .. import media
from ..context import run

PARTS = ("train", "test", "valid")
LINES = 256
"""Lines of each part."""


def _texts(name: str) -> tuple[str, ...]:
    run().used("observations." + name, "lines of common words")
    return tuple(media.text(run(), name + "/" + part, LINES) for part in PARTS)


def ptb(path: Any) -> tuple[str, ...]:
    """Penn Treebank: the parts for training, for tests, and for validation."""
    return _texts("ptb")


def text8(path: Any) -> tuple[str, ...]:
    """Of the first 100 MB of Wikipedia, letters and blanks: parts as for :func:`ptb`."""
    return tuple("".join(c if c.isalpha() else " " for c in text.lower()) for text in _texts("text8"))


def enwik8(path: Any) -> tuple[str, ...]:
    """The first 100 MB of Wikipedia: parts as for :func:`ptb`."""
    return _texts("enwik8")
