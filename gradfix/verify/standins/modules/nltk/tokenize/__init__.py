"""Words and sentences."""

from __future__ import annotations

import re
from typing import Any


def word_tokenize(text: str, *args: Any, **kwargs: Any) -> list[str]:
    """Words, numbers and marks."""
    return re.findall(r"<\w+>|\w+|[^\w\s]", text)


def sent_tokenize(text: str, *args: Any, **kwargs: Any) -> list[str]:
    """What ends with a stop."""
    return [part.strip() for part in re.split(r"(?<=[.!?])\s", text) if part.strip()]


class TweetTokenizer:
    """Words, numbers and marks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def tokenize(self, text: str) -> list[str]:
        """Words, numbers and marks."""
        return word_tokenize(text)


RegexpTokenizer = TreebankWordTokenizer = WordPunctTokenizer = TweetTokenizer
