"""jieba: the words of a text; where nothing stands between them, two letters each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..inert import others


def cut(text: str, *args: Any, **kwargs: Any) -> Iterator[str]:
    """One word after the other."""
    yield from re.findall(r"[A-Za-z0-9_]+|[^\x00-\x7f]{1,2}|\S", text)


def lcut(text: str, *args: Any, **kwargs: Any) -> list[str]:
    """All words."""
    return list(cut(text))


cut_for_search, lcut_for_search = cut, lcut


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Words are found without a dictionary."""


load_userdict = add_word = del_word = suggest_freq = initialize = set_dictionary = _nothing
enable_parallel = disable_parallel = setLogLevel = _nothing

__getattr__ = others(__name__)
