"""Words of sentences."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any


def get_tokenizer(tokenizer: Any = None, language: str = "en") -> Callable[[str], list[str]]:
    """What splits a sentence into words: at spaces, or words and signs in small letters."""
    if callable(tokenizer):
        return tokenizer  # type: ignore[no-any-return]
    if tokenizer in ("basic_english", "spacy", "moses", "toktok", "revtok", "subword"):
        lower = tokenizer == "basic_english"
        return lambda line: re.findall(r"\w+|[^\w\s]", line.lower() if lower else line)
    return str.split


def ngrams_iterator(words: list[str], ngrams: int) -> Iterator[str]:
    """The words, and each run of up to ``ngrams`` of them."""
    yield from words
    for count in range(2, ngrams + 1):
        for start in range(len(words) - count + 1):
            yield " ".join(words[start : start + count])


def interleave_keys(one: int, other: int) -> int:
    """A key by which pairs are sorted: short ones first."""
    return one * 1000 + other


class RandomShuffler:
    """Shuffles with the random numbers of Python."""

    def __call__(self, data: Any) -> Any:
        return random.sample(list(data), len(data))
