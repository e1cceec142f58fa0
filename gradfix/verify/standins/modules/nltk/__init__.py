"""nltk: words and sentences by their spaces and stops, stems, measures of translations."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...inert import others
from . import corpus, metrics, stem, tokenize, translate, util
from .metrics import edit_distance
from .stem import PorterStemmer, SnowballStemmer, WordNetLemmatizer
from .tokenize import sent_tokenize, word_tokenize
from .util import bigrams, ngrams

__all__ = [
    "FreqDist",
    "PorterStemmer",
    "SnowballStemmer",
    "WordNetLemmatizer",
    "bigrams",
    "corpus",
    "download",
    "edit_distance",
    "metrics",
    "ngrams",
    "sent_tokenize",
    "stem",
    "tokenize",
    "translate",
    "util",
    "word_tokenize",
]


class FreqDist(Counter[Any]):
    """How often each word occurs."""

    def freq(self, word: Any) -> float:
        """Its share."""
        return self[word] / max(1, sum(self.values()))

    def N(self) -> int:
        """Of all words."""
        return sum(self.values())


def download(*args: Any, **kwargs: Any) -> bool:
    """Nothing is needed."""
    return True


__getattr__ = others(__name__)
