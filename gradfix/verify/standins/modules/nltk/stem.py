"""Stems of words: a word without its most frequent endings, in the place of each stemmer's own rules."""

from __future__ import annotations

import re
from typing import Any

from ...inert import others

ENDINGS = re.compile(
    r"(?<=\w{3})(?:ational|ization|fulness|ements?|ations?|ings?|edly|ies|ers?|est|ed|ly|es|s)$"
)


class PorterStemmer:
    """Any stemmer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def stem(self, word: str, *args: Any) -> str:
        """A word without its ending."""
        return ENDINGS.sub("", str(word).lower())


class WordNetLemmatizer:
    """Any lemmatizer."""

    def lemmatize(self, word: str, pos: str = "n") -> str:
        """The word as it is."""
        return str(word)


SnowballStemmer = LancasterStemmer = EnglishStemmer = PorterStemmer
__getattr__ = others(__name__)
