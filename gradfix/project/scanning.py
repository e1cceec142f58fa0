"""A scan of a module's text without parsing: what it imports, and whether it is a script."""

from __future__ import annotations

import re
from typing import NamedTuple

from gradfix.system import files

LARGEST = 400_000
"""Bytes of a module that is still looked into."""
IMPORTS = re.compile(
    r"^[ \t]*(from[ \t]+[.\w]+[ \t]+import[ \t]+(?:\([^()]*\)|(?:\\\r?\n|[^\n#(])+)|import[ \t]+[^\n#]+)",
    re.MULTILINE,
)
WORD = re.compile(r"\w+")
RUNS = re.compile(r"^(?:if +__name__|for |while |with |[A-Za-z_][\w.]*\()", re.MULTILINE)
"""What stands at the top of a module that does something when it is run: a guard for that, a loop, a call."""


class Scanned(NamedTuple):
    """What the text of a module tells without parsing it."""

    imports: tuple[str, ...]
    """The statements that import something."""
    words: frozenset[str]
    """The words in them."""
    runs: bool
    """Whether it seems to do something when it is run."""
    clears: bool
    """Whether it clears gradients."""


NOTHING = Scanned((), frozenset(), False, False)

_scanned: dict[str, tuple[tuple[int, int], Scanned]] = {}


def scan(path: str) -> Scanned:
    """What the text of a module tells, read once."""
    try:
        stamp = files.stamp(path)
        known = _scanned.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        data = files.read(path, LARGEST)
    except OSError:
        return NOTHING
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    statements = tuple(IMPORTS.findall(text))
    words = frozenset(word for statement in statements for word in WORD.findall(statement))
    scanned = Scanned(statements, words, RUNS.search(text) is not None, "zero_grad" in text)
    _scanned[path] = stamp, scanned
    return scanned
