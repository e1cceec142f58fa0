"""The text after a fix of the common kinds, without parsing it with libcst.

``gradfix check`` tells which fix ``apply`` would choose, and for that has to see what the model says of
the result. Most fixes replace an expression, drop an argument or add a statement; for these the text
can be had by cutting bytes. ``apply`` itself always writes what :mod:`gradfix.rewrite` makes; a test holds
the two to the same text.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from gradfix.codemod import Edit, InsertStatement, RemoveArgument, ReplaceExpression, ReplaceStatement, Span
from gradfix.segments import Lines


def spliced(text: str, tree: ast.Module, edits: Sequence[Edit]) -> str | None:
    """``text`` after ``edits``; None where this takes more than that."""
    lines = Lines(text)
    cuts: list[tuple[int, int, bytes]] = []
    for edit in edits:
        if isinstance(edit, InsertStatement):
            inserted = _inserted(lines, edit)
            if inserted is None:
                return None
            cuts.append(inserted)
            continue
        if not isinstance(edit, (ReplaceExpression, ReplaceStatement, RemoveArgument)):
            return None
        if not isinstance(edit, RemoveArgument):
            start, end = lines.extent(edit.span)
            cuts.append((start, end, edit.code.encode()))
        else:
            extent = _argument(lines, tree, edit)
            if extent is None:
                return None
            cuts.append((*extent, b""))
    cuts.sort()
    if any(first[1] > second[0] for first, second in itertools.pairwise(cuts)):
        return None
    data = lines.data
    for start, end, code in reversed(cuts):
        data = data[:start] + code + data[end:]
    return data.decode()


def _inserted(lines: Lines, edit: InsertStatement) -> tuple[int, int, bytes] | None:
    """Where a statement goes before a simple one that has its lines to itself."""
    anchor = edit.anchor
    start = lines.offset(anchor.line, 0)
    indent = lines.data[start : start + anchor.column]
    ended = lines.newline(anchor.end_line).encode()
    after = lines.data[lines.extent(anchor)[1] :].split(b"\n", 1)[0]
    alone = not indent.strip() and not after.split(b"#")[0].strip() and ended
    first = lines.data[start + anchor.column :].split(None, 1)[0]
    if b"\t" in indent and "\n" in edit.code:
        return None  # how deep its inner lines are takes more to say
    if edit.where != "before" or not alone or first in COMPOUND or b":" in first:
        return None
    newline = lines.newline(anchor.line).encode()
    code = b"".join(indent + row.encode() + newline for row in edit.code.split("\n"))
    return start, start, code


COMPOUND = frozenset({b"if", b"for", b"while", b"with", b"try:", b"def", b"class", b"async", b"match", b"@"})


def _argument(lines: Lines, tree: ast.Module, edit: RemoveArgument) -> tuple[int, int] | None:
    """The bytes of an argument with the comma that goes with it, where they stand on one line."""
    if edit.span.line != edit.span.end_line:
        return None
    call = next((n for n in ast.walk(tree) if isinstance(n, ast.Call) and Span.of(n) == edit.span), None)
    if call is None:
        return None
    parts: list[ast.expr | ast.keyword] = sorted(
        [*call.args, *call.keywords], key=lambda n: (n.lineno, n.col_offset)
    )
    for number, part in enumerate(parts):
        by_name = isinstance(part, ast.keyword) and part.arg == edit.argument
        by_place = isinstance(edit.argument, int) and number == edit.argument
        if not (by_name or by_place):
            continue
        start, _end = lines.extent(Span.of(part))
        close = lines.extent(edit.span)[1] - 1
        if len(parts) == 1:
            return start, close
        if number + 1 < len(parts):
            return start, lines.extent(Span.of(parts[number + 1]))[0]
        return lines.extent(Span.of(parts[number - 1]))[1], close
    return None
