"""The text after a fix of the common kinds, by cutting bytes: without libcst, whatever the layout around it.

Most fixes replace an expression, drop an argument or add a statement before a simple one. Their result is the
old text but for those bytes. What takes more is left to :mod:`gradfix.rewriting.rewrite`, and so is every
layout in which more than these bytes would have to change; a test holds the two to the same text. ``check``
and ``apply`` both ask here first, so that the one promises what the other does.
"""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gradfix.core.codemod import (
    Decorate,
    Edit,
    Enclose,
    InsertStatement,
    RemoveArgument,
    ReplaceExpression,
    ReplaceStatement,
)
from gradfix.core.segments import Lines, has_to_be_enclosed, meaning
from gradfix.core.span import Span

CUTTING = (
    InsertStatement,
    ReplaceExpression,
    ReplaceStatement,
    RemoveArgument,
    Decorate,
    Enclose,
)
_Cut = tuple[int, int, bytes]
"""Start and end of the bytes that go, and what comes in their place."""


class _Cutting(Exception):
    """This fix takes more than cutting bytes."""


def spliced(text: str, tree: ast.Module, edits: Sequence[Edit]) -> str | None:
    """``text``, of which ``tree`` is the syntax tree, after ``edits``; None where this takes more."""
    lines = Lines(text)
    try:
        cuts = [cut for edit, places in _with_places(tree, edits) for cut in _cuts(lines, edit, places)]
    except (_Cutting, SyntaxError, ValueError):  # What makes no sense is refused there, with the reason.
        return None
    # What is put before something comes before what replaces it, and of two insertions the first one first.
    cuts.sort(key=lambda cut: cut[:2])
    if not cuts or any(first[1] > second[0] for first, second in itertools.pairwise(cuts)):
        return None
    pieces: list[bytes] = []
    at = 0
    for start, end, code in cuts:
        pieces += lines.data[at:start], code
        at = end
    result = b"".join((*pieces, lines.data[at:])).decode()
    return result if _valid(result) or not _valid(text) else None


def _valid(text: str) -> bool:
    """Whether this is a program: not every text that parses is (a name that is used and then made global)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<source>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


# ---------------------------------------------------------------------------- where the edits are


class _Place(NamedTuple):
    """A node of the tree at the place that an edit names."""

    node: ast.stmt | ast.expr
    outermost: ast.expr | None
    """The outermost expression that it is a part of; None for a statement."""
    around: ast.stmt | ast.ExceptHandler | None
    """What it stands in the block of; None at the top, and in a ``case``."""


def _with_places(tree: ast.Module, edits: Sequence[Edit]) -> Iterator[tuple[Edit, list[_Place]]]:
    """Every edit with the nodes at its place, a statement before the expression that is all of it."""
    wanted: dict[Span, list[_Place]] = {}
    for edit in edits:
        if not isinstance(edit, CUTTING):
            raise _Cutting
        wanted[edit.anchor if isinstance(edit, InsertStatement) else edit.span] = []
    for place in _below(tree, sorted({line for span in wanted for line in (span.line, span.end_line)})):
        found = wanted.get(Span.of(place.node))
        if found is not None:
            found.append(place)
    for edit in edits:
        yield edit, wanted[edit.anchor if isinstance(edit, InsertStatement) else edit.span]


def _below(tree: ast.Module, lines: Sequence[int]) -> Iterator[_Place]:
    """The statements and expressions around these lines, those in f-strings left out.

    Before Python 3.12 what stands in an f-string has the position of something else.
    """
    waiting: list[tuple[ast.AST, ast.expr | None, ast.stmt | ast.ExceptHandler | None]] = [(tree, None, None)]
    while waiting:
        node, outermost, around = waiting.pop()
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            if not any(first <= line <= (node.end_lineno or first) for line in lines):
                continue
            yield _Place(node, None, around)
        elif isinstance(node, ast.expr):
            outermost = outermost or node
            if not isinstance(node, ast.Starred):
                yield _Place(node, outermost, around)
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            around = node
        elif isinstance(node, ast.match_case):
            around = None
        # The values of patterns are not any expressions.
        if not isinstance(node, ast.JoinedStr | ast.pattern):
            waiting.extend((child, outermost, around) for child in ast.iter_child_nodes(node))


def _only(kinds: type | tuple[type, ...], places: Iterable[_Place]) -> _Place:
    found = [place for place in places if isinstance(place.node, kinds)]
    if len(found) != 1:
        raise _Cutting
    return found[0]


# ---------------------------------------------------------------------------- what is cut


def _cuts(lines: Lines, edit: Edit, places: Sequence[_Place]) -> list[_Cut]:
    match edit:
        case Decorate():
            node = _only(ast.FunctionDef, places).node
            return [_line_before(lines, node, f"@{edit.code}")]
        case Enclose():
            return _enclosure(lines, edit, _only(ast.stmt, places))
        case _:
            return [_cut(lines, edit, places)]


def _cut(lines: Lines, edit: Edit, places: Sequence[_Place]) -> _Cut:
    match edit:
        case InsertStatement():
            return _insertion(lines, edit, _only(ast.stmt, places))
        case RemoveArgument():
            return _argument(lines, edit, _only(ast.Call, places).node)
        case ReplaceStatement():
            return _statement(lines, edit, _only(ast.stmt, places).node)
        case ReplaceExpression():
            return _expression(lines, edit, _only(ast.expr, places))
        case _:
            raise _Cutting


def _expression(lines: Lines, edit: ReplaceExpression, place: _Place) -> _Cut:
    start, end = lines.extent(edit.span)
    code = edit.code.strip()
    # A generator may share its parentheses with the call that it is handed to.
    if isinstance(place.node, ast.GeneratorExp) or "\n" in code or "\r" in code or not meaning(code):
        raise _Cutting
    assert place.outermost is not None
    enclose = has_to_be_enclosed(lines, (start, end), place.outermost, code)
    return start, end, (f"({code})" if enclose else code).encode()


def _statement(lines: Lines, edit: ReplaceStatement, node: ast.AST) -> _Cut:
    if _compound(node) or _compound(*ast.parse(edit.code).body) or "\n" in edit.code:
        raise _Cutting
    return (*lines.extent(edit.span), edit.code.encode())


def _insertion(lines: Lines, edit: InsertStatement, place: _Place) -> _Cut:
    """Where a statement goes before a simple one that has its lines to itself."""
    anchor, node = edit.anchor, place.node
    start, end = lines.offset(anchor.line, 0), lines.offset(anchor.line, anchor.column)
    indent = _indent(lines, node)
    behind = lines.data[lines.extent(anchor)[1] : lines.end(anchor.end_line)]
    alone = not lines.data[start:end].strip() and not behind.split(b"#")[0].strip(b" \t\f")
    continued = lines.data[:start].rstrip(b"\r\n").endswith(b"\\")
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    newline = lines.newline(anchor.line).encode()
    if edit.where != "before" or not alone or continued or _compound(node) or docstring or not newline:
        raise _Cutting
    rows = edit.code.encode().split(b"\n")
    statements = sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(edit.code)))
    if not statements or (len(rows) > 1 and len(rows) != statements):
        raise _Cutting
    if any(row.startswith(b" ") for row in rows):
        unit = _unit(lines, indent, place)
        rows = [_DEEPER.sub(lambda blanks: unit * (len(blanks[0]) // 4), row) for row in rows]
    return end, end, b"".join(row + newline + indent for row in rows)


def _line_before(lines: Lines, node: ast.stmt | ast.expr, code: str) -> _Cut:
    """A line of its own before the first one of a statement."""
    start, end = lines.offset(node.lineno, 0), lines.offset(node.lineno, node.col_offset)
    newline = lines.newline(node.lineno).encode()
    if lines.data[start:end].strip() or lines.data[:start].rstrip(b"\r\n").endswith(b"\\") or not newline:
        raise _Cutting
    return end, end, code.encode() + newline + _indent(lines, node)


def _enclosure(lines: Lines, edit: Enclose, place: _Place) -> list[_Cut]:
    """A ``with`` around statements, whose lines are indented, but for those within a text."""
    node = place.node
    body = getattr(node, "body", None)
    end = edit.last or edit.span
    last = end.end_line
    if (body and body[0].lineno == node.lineno) or lines.data[lines.extent(end)[1] : lines.end(last)].split(
        b"#"
    )[0].strip():
        raise _Cutting
    if body:
        unit = _indent(lines, body[0]).removeprefix(_indent(lines, node))
    elif place.around is not None:
        unit = _unit(lines, _indent(lines, node), place)
    else:
        first = _INDENTED.search(lines.data)
        unit = first[1] if first is not None else b"    "
    if not unit or unit.strip(b" \t"):
        raise _Cutting
    within = {
        line
        for part in ast.walk(node)
        if isinstance(part, (ast.Constant, ast.JoinedStr)) and part.end_lineno is not None
        for line in range(part.lineno + 1, part.end_lineno + 1)
    }
    head = _line_before(lines, node, f"with {edit.code}:")
    cuts = [(head[0], head[1], head[2] + unit)]
    for line in range(node.lineno + 1, last + 1):
        start = lines.offset(line, 0)
        if line not in within and lines.data[start : lines.end(line)].strip():
            cuts.append((start, start, unit))
    return cuts


_DEEPER = re.compile(rb"^(    )+")
_INDENTED = re.compile(rb":[ \t]*(?:#[^\n]*)?\r?\n([ \t]+)\S")
"""A block of a file, with what it is indented by."""


def _unit(lines: Lines, indent: bytes, place: _Place) -> bytes:
    """By what the block of a statement is indented."""
    outer = b"" if place.around is None else _indent(lines, place.around)
    unit = indent.removeprefix(outer)
    if place.around is None or not indent.startswith(outer) or not unit:
        raise _Cutting
    return unit


def _compound(*nodes: ast.AST) -> bool:
    return len(nodes) != 1 or hasattr(nodes[0], "body") or hasattr(nodes[0], "cases")


def _indent(lines: Lines, node: ast.stmt | ast.expr | ast.ExceptHandler) -> bytes:
    """The indentation of a statement that begins its line: the tokenizer counts anew at a form feed."""
    before = lines.data[lines.offset(node.lineno, 0) : lines.offset(node.lineno, node.col_offset)]
    return before.rpartition(b"\f")[2]


def _argument(lines: Lines, edit: RemoveArgument, call: ast.AST) -> _Cut:
    """An argument with the comma that goes with it, where the call stands on one line."""
    assert isinstance(call, ast.Call)
    named: list[ast.expr | ast.keyword] = [k for k in call.keywords if k.arg == edit.argument]
    if isinstance(edit.argument, int):
        named = list(call.args[edit.argument : edit.argument + 1])
    if edit.span.line != edit.span.end_line or len(named) != 1:
        raise _Cutting
    parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    parts.sort(key=lambda part: (part.lineno, part.col_offset))
    number = parts.index(named[0])
    spans = [lines.extent(Span.of(part)) for part in parts]
    begin, close = lines.extent(Span.of(call.func))[1], lines.extent(edit.span)[1] - 1
    start, end = spans[number]
    before = lines.data[spans[number - 1][1] if number else begin : start]
    after = lines.data[end : spans[number + 1][0] if number + 1 < len(parts) else close]
    # Parentheses around an argument, or around what is called, are no part of it.
    if before.strip() not in ((b"," if number else b"("),) or after.strip() not in (b"", b","):
        raise _Cutting
    if number + 1 < len(parts):
        return start, end + len(after), b""
    if not number:
        return start - len(before.partition(b"(")[2]), close, b""
    if b"," in after:
        # The comma before it is the last one now.
        return start - len(before.partition(b",")[2]), end + after.index(b",") + 1, b""
    return start - len(before), end, b""
