"""regex: what ``re`` knows; classes of letters by their names are classes of letters."""

from __future__ import annotations

import re
from typing import Any

CLASSES = {
    r"\p{L}": r"[^\W\d_]",
    r"\p{N}": r"\d",
    r"\p{P}": r"[^\w\s]",
    r"\p{Han}": "[\u4e00-\u9fff]",
    r"\p{Lu}": "[A-Z]",
    r"\p{Ll}": "[a-z]",
}
INNER = {r"\p{L}": "a-zA-Z\u00c0-\u024f", r"\p{N}": r"\d", r"\p{P}": "!-/:-@"}
"""The same within brackets."""


def _known(pattern: Any) -> Any:
    if not isinstance(pattern, str):
        return pattern
    for name, inner in INNER.items():
        opened = r"(\[[^\]]*)" + re.escape(name)
        while re.search(opened, pattern):
            pattern = re.sub(opened, r"\g<1>" + inner.replace("\\", r"\\"), pattern, count=1)
    for name, plain in CLASSES.items():
        pattern = pattern.replace(name, plain)
    return pattern


def _with(name: str) -> Any:
    real = getattr(re, name)

    def call(pattern: Any, *args: Any, **kwargs: Any) -> Any:
        return real(_known(pattern), *args, **kwargs)

    return call


compile, search, match, fullmatch, split, findall, finditer, sub, subn = map(
    _with, ("compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
)


def __getattr__(name: str) -> Any:
    """Flags, and all the rest."""
    return getattr(re, name)
