"""Which of the statements that a rewrite changed a run has come to.

What no run has executed is not proved by it. :func:`changed` says which statements of the rewritten text have
to be executed, :func:`compiled` makes them say that they are. This file is loaded into the script's process
too: standard library only.
"""

from __future__ import annotations

import ast
import difflib
import types
from collections.abc import Collection, Iterator
from typing import NamedTuple

MARK = "__gradfix_reached__"
"""The name among the builtins that a watched statement calls, with its place, before it is executed."""

Begin = tuple[int, int]
"""Where a statement begins: its line (from 1) and its column, in bytes."""


class _Statement(NamedTuple):
    begin: Begin
    last: int
    """Its last line; that of its header, if it has a body."""
    siblings: tuple[int, ...]
    """The lines on which the other statements of its block begin, the nearest first."""


def changed(before: str, after: str) -> tuple[Begin, ...]:
    """The statements of ``after`` on lines that ``before`` does not have.

    A statement that was removed is stood for by its neighbour in the same block: a run that comes to that one
    has come to the place. Comments and blank lines do not count; in what is not Python there is none.
    """
    try:
        old, new = list(_statements(before)), list(_statements(after))
    except (SyntaxError, ValueError):
        return ()
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    found: set[Begin] = set()
    same: dict[int, int] = {}
    removed: set[int] = set()
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            same.update((start + 1 + n, first + 1 + n) for n in range(end - start))
            continue
        here = {one.begin for one in new if one.begin[0] <= last and one.last > first}
        found |= here
        if not here:
            removed.update(range(start + 1, end + 1))
    for one in old:
        if one.begin[0] in removed:
            beside = next((same[line] for line in one.siblings if line in same), None)
            found.update([one.begin for one in new if one.begin[0] == beside][:1])
    return tuple(sorted(found))


def _statements(text: str) -> Iterator[_Statement]:
    """Every statement of a program that may have a call before it."""
    for block in _blocks(ast.parse(text)):
        for number, node in enumerate(block):
            if not _may_be_marked(node):
                continue
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            others = sorted(range(len(block)), key=lambda other: (abs(other - number), other))
            siblings = tuple(block[other].lineno for other in others if other != number)
            yield _Statement((node.lineno, node.col_offset), last, siblings)


def _may_be_marked(node: ast.stmt) -> bool:
    """Whether a call may come before a statement: before a docstring or a ``__future__`` import none may."""
    if isinstance(node, ast.ImportFrom):
        return node.module != "__future__"
    return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """All lists of statements in a program."""
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def compiled(source: str, path: str, watched: Collection[Begin]) -> types.CodeType:
    """The code of ``source``, in which the ``watched`` statements call :data:`MARK` first."""
    if not watched:
        return compile(source, path, "exec", dont_inherit=True)
    wanted = {(line, column) for line, column in watched}
    tree = ast.parse(source, path)
    for block in list(_blocks(tree)):
        block[:] = [
            one
            for node in block
            for one in ([_mark(node), node] if (node.lineno, node.col_offset) in wanted else [node])
        ]
    return compile(tree, path, "exec", dont_inherit=True)


def _mark(node: ast.stmt) -> ast.stmt:
    """The call that says that ``node`` is executed; to tracebacks it stands where that does."""
    place: list[ast.expr] = [ast.Constant(node.lineno), ast.Constant(node.col_offset)]
    marking = ast.Expr(ast.Call(ast.Name(MARK, ast.Load()), place, []))
    for one in ast.walk(marking):
        ast.copy_location(one, node)
    return marking
