"""Patches that ``git apply`` takes, and edits in ruff's shape, from a text before and after.

A patch is made of bytes: a file may be in any encoding, and what git calls a line ends at ``\\n`` only,
so that carriage returns and form feeds are a part of its content.
"""

from __future__ import annotations

import bisect
import io
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import AnyStr, TypedDict

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

_CONTEXT = 3
# difflib compares every line with all that are equal to it. Beyond this many lines it may skip the
# frequent ones, at the price of a patch that is larger than it had to be.
_LONG = 5_000
_NO_NEWLINE = b"\\ No newline at end of file\n"
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


class Position(TypedDict):
    """Both count from 1, the column in characters."""

    row: int
    column: int


class TextEdit(TypedDict):
    """Put ``content`` in the place of what is between two positions."""

    content: str
    location: Position
    end_location: Position
    cell: int | None
    """The cell of a notebook within which rows are counted; null elsewhere."""


def unified_diff(path: str, before: bytes, after: bytes, *, from_toplevel: bool = False) -> bytes:
    """The patch that makes ``after`` of ``before``; empty if they are the same.

    ``path`` has forward slashes and counts from the folder in which the patch is to be applied. With
    ``from_toplevel`` it counts from the top of the git repository, and the patch has the header
    ``diff --git``. That header is not only decoration: with it, ``git apply`` in a subdirectory takes
    the path from the top and *silently skips* what is not below the subdirectory; without it, the
    path counts from where it runs.
    """
    if before == after:
        return b""
    old, new = _git_lines(before), _git_lines(after)
    source, target = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    tab = b"\t" if " " in path else b""  # where a name with spaces ends
    out = [b"diff --git %b %b\n" % (source, target)] if from_toplevel else []
    out += [b"--- %b%b\n" % (source, tab), b"+++ %b%b\n" % (target, tab)]
    for group in _matcher(old, new).get_grouped_opcodes(_CONTEXT):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        out.append(b"@@ -%b +%b @@\n" % (_range(i1, i2), _range(j1, j2)))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += _marked(b" ", old[i1:i2])
            else:
                out += _marked(b"-", old[i1:i2])
                out += _marked(b"+", new[j1:j2])
    return b"".join(out)


def combine(patches: Iterable[bytes]) -> bytes:
    """One patch of several."""
    return b"".join(patches)


def check(patch: bytes, contents: Mapping[str, tuple[bytes, bytes]] | None = None) -> str | None:
    """What is wrong with a patch as another reader sees it; ``None`` if it holds.

    It is parsed by ``unidiff`` and its hunks are counted. With ``contents``, each path's bytes before
    and after, it is applied as well: it must concern exactly these files and make each one's ``after``.
    """
    try:
        # Latin-1 keeps every byte; StringIO, unlike str.splitlines, ends lines at \n only.
        files = PatchSet(io.StringIO(patch.decode("latin-1"), newline="\n"))
    except UnidiffParseError as error:
        return f"the patch does not parse: {error}"
    headers = sum(line.startswith(b"@@ -") for line in _git_lines(patch))
    hunks = sum(len(file) for file in files)
    if hunks != headers or not all(hunk.is_valid() for file in files for hunk in file):
        return f"the patch is broken: {headers} hunks are announced, {hunks} were read"
    if contents is None:
        return None
    names = {_quoted(f"a/{path}").decode("latin-1"): path for path in contents}
    if sorted(file.source_file for file in files) != sorted(names):
        return f"the patch is for {len(files)} files, not for the {len(names)} that have changed"
    for file in files:
        path = names[file.source_file]
        before, after = contents[path]
        if _applied(file, before) != after:
            return f"the patch does not make of {path} what was meant"
    return None


def edits_between(before: str, after: str, cell: int | None = None) -> list[TextEdit]:
    """The replacements that make ``after`` of ``before``, in order and apart from each other.

    Positions are those of ``before``, so they are to be applied from the last to the first. The two are
    files, or the sources of one ``cell`` of a notebook.
    """
    old, new = _text_lines(before), _text_lines(after)
    starts = [0, *itertools.accumulate(map(len, old))]
    # A text that ends with a newline has, for ruff, an empty line after it.
    rows = starts if not old or old[-1].endswith(("\r", "\n")) else starts[:-1]
    edits = []
    for tag, i1, i2, j1, j2 in _matcher(old, new).get_opcodes():
        if tag == "equal":
            continue
        # Lines that were changed one by one are told one by one.
        step = 1 if i2 - i1 == j2 - j1 else max(i2 - i1, j2 - j1)
        for shift in range(0, max(i2 - i1, j2 - j1), step):
            was = "".join(old[i1 + shift : min(i1 + shift + step, i2)])
            now = "".join(new[j1 + shift : min(j1 + shift + step, j2)])
            head, tail = _common_ends(was, now)
            start, end = starts[i1 + shift] + head, starts[i1 + shift] + len(was) - tail
            edits.append(
                TextEdit(
                    content=now[head : len(now) - tail],
                    location=_position(rows, start),
                    end_location=_position(rows, end),
                    cell=cell,
                )
            )
    return edits


def _git_lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def _text_lines(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _matcher(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> SequenceMatcher[AnyStr]:
    return SequenceMatcher(None, old, new, autojunk=max(len(old), len(new)) > _LONG)


def _range(start: int, end: int) -> bytes:
    # An empty range is named by the line before it.
    return b"%d,%d" % (start + (start != end), end - start)


def _marked(mark: bytes, lines: Sequence[bytes]) -> list[bytes]:
    return [mark + line if line.endswith(b"\n") else mark + line + b"\n" + _NO_NEWLINE for line in lines]


def _quoted(name: str) -> bytes:
    """A name as git writes it, in quotes if it has characters that are not printable ASCII.

    A name with a space before ``b/`` is written without that space: in ``diff --git a/x b/y b/x b/y``
    readers other than git find a wrong end of the first name.
    """
    raw = name.encode("utf-8", "surrogateescape")
    ambiguous = b" b/" in raw
    if not ambiguous and all(32 <= byte < 127 and byte not in (34, 92) for byte in raw):
        return raw
    return b'"%b"' % b"".join(_escaped(byte, ambiguous) for byte in raw)


def _escaped(byte: int, space: bool) -> bytes:
    if byte in _ESCAPES:
        return f"\\{_ESCAPES[byte]}".encode()
    plain = 32 < byte < 127 or (byte == 32 and not space)
    return bytes([byte]) if plain else b"\\%03o" % byte


def _applied(file: PatchedFile, before: bytes) -> bytes | None:
    """What ``file``'s hunks make of ``before``; ``None`` if they do not fit."""
    old = _git_lines(before)
    out: list[bytes] = []
    at = 0
    for hunk in file:
        start = hunk.source_start - (hunk.source_length > 0)
        out += old[at:start]
        at = start
        ended = [*(line.line_type == "\\" for line in hunk[1:]), False]
        for line, lacks_newline in zip(hunk, ended):
            value = line.value.encode("latin-1")
            value = value.removesuffix(b"\n") if lacks_newline else value
            if line.line_type in (" ", "-"):
                if at >= len(old) or old[at] != value:
                    return None
                at += 1
            if line.line_type in (" ", "+"):
                out.append(value)
    return b"".join([*out, *old[at:]])


def _common_ends(was: str, now: str) -> tuple[int, int]:
    """How many characters both texts start and end with, never a half of a line end."""
    shorter = min(len(was), len(now))
    head = 0
    while head < shorter and was[head] == now[head]:
        head += 1
    head -= was[head - 1 : head + 1] == "\r\n" if head else 0
    tail = 0
    while tail < shorter - head and was[-1 - tail] == now[-1 - tail]:
        tail += 1
    cut = len(was) - tail
    tail -= was[cut - 1 : cut + 1] == "\r\n" if tail and cut else 0
    return head, tail


def _position(rows: Sequence[int], offset: int) -> Position:
    row = bisect.bisect_right(rows, offset)
    return Position(row=row, column=offset - rows[row - 1] + 1)
