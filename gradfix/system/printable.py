"""Text that is safe to print on a terminal: control characters are made visible.

What comes from a repository (names of files, lines of code, messages with code in them) may be written by
anybody. In a terminal text acts: escape sequences move the cursor, write to the clipboard and make links, a
carriage return overwrites, a newline in a name forges a line, and characters that are not seen reorder those
that are (Trojan Source). In the log of a job ``##vso[task.setvariable ...]`` is an order, wherever it stands.
Patches are the exception: they are exact, and quote names as git does.
"""

from __future__ import annotations

import re
from functools import lru_cache

_INVISIBLE = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0")
"""Drawn as nothing, or as a blank, although Unicode calls them letters, marks or symbols."""
_ORDER = re.compile(r"##[a-z]*\[")
"""What begins an order to GitHub, Azure Pipelines or TeamCity, which read what a job prints."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_BY_LETTER = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def printable(text: str) -> str:
    """``text`` on one line, with every character that steers, hides or reorders written out.

    A newline becomes ``\\n``, a byte of a file name that is no text ``\\x80``, anything else ``\\u{202e}``.
    """
    if text.isascii() and text.isprintable() and "##" not in text:
        return text
    return visible(text.translate(_BY_LETTER))


def visible(text: str) -> str:
    """The same for a text of several lines: it keeps its newlines and tabs."""
    text = text.replace("\r\n", "\n")
    if not (text.isascii() and text.isprintable()):
        text = "".join(one if _harmless(one) else _written_out(one) for one in text)
    return _ORDER.sub(lambda found: found[0][:-1] + _written_out("["), text)


def characters(line: str) -> list[str]:
    """What :func:`printable` makes of each character of a line."""
    orders = {found.end() - 1 for found in _ORDER.finditer(line)}
    return [_written_out(one) if at in orders else printable(one) for at, one in enumerate(line)]


def encodable(text: str) -> str:
    """``text`` as UTF-8 can hold it: what it cannot, half a pair of UTF-16 alone, is written out."""
    return _SURROGATE.sub(lambda found: _written_out(found[0]), text)


def leading(path: str) -> str:
    """``path`` at the beginning of a line, where the log of a GitHub job takes ``::`` for an order."""
    return f"./{path}" if path.lstrip().startswith("::") else path


def _written_out(character: str) -> str:
    number = ord(character)
    # How Python keeps the bytes of a name that cannot be decoded (surrogateescape).
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else f"\\u{{{number:x}}}"


@lru_cache(maxsize=1024)
def _harmless(character: str) -> bool:
    if character in "\n\t" or " " <= character <= "~":
        return True
    if character in _INVISIBLE or "\ufe00" <= character <= "\ufe0f" or character >= "\U000e0100":
        return False
    import unicodedata  # Most runs print ASCII alone.

    # Cc control, Cf format (bidirectional, zero width, tags), Cs surrogate, Co private, Cn unassigned,
    # Zl and Zp line and paragraph separators, Zs blanks other than the plain one.
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
