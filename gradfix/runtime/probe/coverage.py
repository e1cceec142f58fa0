"""Which of the pieces of a program that a rewrite changed were executed by a run.

What no run has executed is not proved by it. A piece is a statement, or an expression that is not evaluated
whenever its statement is: a branch of ``a if c else b``, what follows ``and`` or ``or``, the body of a
lambda, an element of a comprehension. :func:`changed` says which pieces of a text have to be executed,
:func:`compiled` makes them say that they are. This file is loaded into the script's process too: standard
library only.
"""

from __future__ import annotations

import ast
import difflib
import types
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple, TypeVar

from ..notebook import flags_of, is_notebook

MARK = "__gradfix_reached__"
"""The name among the builtins that a watched piece calls, with its place, before it is executed."""

Piece = tuple[int, int, int, int]
"""Where a piece begins and ends: lines (from 1) and columns, in bytes."""


_Node = TypeVar("_Node", bound=ast.AST)


class Statement(NamedTuple):
    piece: Piece
    last: int
    """Its last line; that of its header, if it has a body."""
    siblings: tuple[int, ...]
    """The lines on which the other statements of its block begin, the nearest first."""
    node: ast.stmt


def changed(before: str, after: str) -> tuple[Piece, ...]:
    """The pieces of ``after`` that ``before`` does not have: statements by line, parts by what they are.

    A statement that was removed is stood for by its neighbour in the same block: a run that comes to that one
    has come to the place. A function's decorators and its header are stood for by the first statement of its
    body: what they change, a call has to show. Comments and blank lines do not count; in what is not Python
    there is none.
    """
    try:
        old, new = list(statements(before)), list(statements(after))
    except (SyntaxError, ValueError):
        return ()
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    found: set[Piece] = set()
    same: dict[int, int] = {}
    removed: set[int] = set()
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            same.update((start + 1 + n, first + 1 + n) for n in range(end - start))
            continue
        here = _within(new, first, last)
        found |= {one.piece for one in here} | _new_parts(_within(old, start, end), here)
        found |= {piece for one in new for piece in _entered(one, first, last)}
        if not here:
            removed.update(range(start + 1, end + 1))
    for one in old:
        if removed and isinstance(one.node, FUNCTIONS) and not removed.isdisjoint(_header(one.node)):
            kept = [other.node for other in new if other.piece[0] == same.get(one.piece[0])]
            found |= {piece for node in kept for piece in _first(node)}
        if one.piece[0] in removed:
            beside = next((same[line] for line in one.siblings if line in same), None)
            found.update([one.piece for one in new if one.piece[0] == beside][:1])
    return tuple(sorted(found))


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _entered(one: Statement, first: int, last: int) -> list[Piece]:
    """Where a function is entered that has decorators or a header on the lines from ``first`` to before
    ``last``."""
    if isinstance(one.node, FUNCTIONS) and any(first < line <= last for line in _header(one.node)):
        return _first(one.node)
    return []


def _header(node: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    """The lines of a function before its body."""
    start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return range(start, max(node.body[0].lineno, node.lineno + 1))


def _first(node: ast.stmt) -> list[Piece]:
    """The first statement of a body that may have a call before it."""
    body: list[ast.stmt] = getattr(node, "body", [])
    return [piece_of(one) for one in body if _may_be_marked(one)][:1]


def _within(statements: list[Statement], first: int, last: int) -> list[Statement]:
    """Those on the lines from ``first`` (from 0) to before ``last``."""
    return [one for one in statements if one.piece[0] <= last and one.last > first]


def _new_parts(old: list[Statement], new: list[Statement]) -> set[Piece]:
    """The expressions in some statements that are evaluated under a condition, and others do not have."""
    known = Counter(ast.dump(part) for one in old for part in parts(one.node))
    found = set()
    for one in new:
        for part in parts(one.node):
            known[ast.dump(part)] -= 1
            if known[ast.dump(part)] < 0:
                found.add(piece_of(part))
    return found


def piece_of(node: ast.stmt | ast.expr) -> Piece:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


def statements(text: str) -> Iterator[Statement]:
    """Every statement of a program that may have a call before it."""
    for block in _blocks(ast.parse(text)):
        for number, node in enumerate(block):
            if not _may_be_marked(node):
                continue
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            others = sorted(range(len(block)), key=lambda other: (abs(other - number), other))
            siblings = tuple(block[other].lineno for other in others if other != number)
            yield Statement(piece_of(node), last, siblings, node)


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


def parts(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of its body, that are not evaluated whenever it is."""
    yield from _conditional(node)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from parts(child)


def _conditional(node: ast.AST) -> list[ast.expr]:
    """The operands of an expression that it need not evaluate."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values[1:]
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return [node.elt]
    if isinstance(node, ast.DictComp):
        return [node.value]
    if isinstance(node, ast.comprehension):
        return list(node.ifs)
    return []


def compiled(source: str, path: str, watched: Collection[Piece]) -> types.CodeType:
    """The code of ``source``, in which the ``watched`` pieces call :data:`MARK` first."""
    if not watched and not is_notebook(path):
        return compile(source, path, "exec", dont_inherit=True)
    tree = marked(source, path, watched)
    flags = flags_of(tree) if is_notebook(path) else 0
    code: types.CodeType = compile(tree, path, "exec", flags, dont_inherit=True)
    return code


def marked(source: str, path: str, watched: Collection[Piece]) -> ast.Module:
    """The tree of ``source``, in which the ``watched`` pieces call :data:`MARK` first."""
    wanted = {tuple(piece) for piece in watched}
    tree = ast.parse(source, path)
    for block in list(_blocks(tree)):
        for node in block:
            found = {id(part) for part in parts(node) if piece_of(part) in wanted}
            if found:
                _Marking(found).visit(node)
        block[:] = [
            one
            for node in block
            for one in ([_located(ast.Expr(_mark(node)), node), node] if piece_of(node) in wanted else [node])
        ]
    return tree


class _Marking(ast.NodeTransformer):
    """Lets expressions say that they are evaluated: the call is false, so its ``or`` goes on to them."""

    def __init__(self, parts: Collection[int]) -> None:
        self.parts = parts
        """The identities of their nodes."""

    def visit(self, node: ast.AST) -> ast.AST:
        marked = id(node) in self.parts
        node = self.generic_visit(node)
        if not marked:
            return node
        assert isinstance(node, ast.expr)
        return ast.copy_location(ast.BoolOp(ast.Or(), [_mark(node), node]), node)


def _mark(node: ast.stmt | ast.expr) -> ast.expr:
    """The call that says that ``node`` is executed; to tracebacks it stands where that does."""
    place: list[ast.expr] = [ast.Constant(number) for number in piece_of(node)]
    return _located(ast.Call(ast.Name(MARK, ast.Load()), place, []), node)


def _located(node: _Node, at: ast.stmt | ast.expr) -> _Node:
    """``node``, all of it where ``at`` is."""
    for one in ast.walk(node):
        ast.copy_location(one, at)
    return node
