"""nltk: words and sentences by their spaces and stops."""

from __future__ import annotations

from typing import Any

from ...inert import others
from . import tokenize
from .tokenize import sent_tokenize, word_tokenize

__all__ = ["download", "sent_tokenize", "tokenize", "word_tokenize"]


def download(*args: Any, **kwargs: Any) -> bool:
    """Nothing is needed."""
    return True


__getattr__ = others(__name__)
