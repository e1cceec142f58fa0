"""Programs in which the graph of what is carried over iterations is cut every so many iterations only.

A fix of state that is carried over iterations cuts in every iteration. A repair that goes back through a
segment of iterations cuts at the end of each: what its later steps should consume is told by the same program
with the same cut, made as seldom.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Callable


def cut_every(original: str, fixed: str, iterations: int, late: bool) -> str | None:
    """The program ``fixed``, its detaches that ``original`` has not made in every so many iterations only.

    Args:
        original: The program before the fix.
        fixed: The program after it.
        iterations: How many iterations make a segment.
        late: Whether the first to be made is that at the end of the first segment; otherwise it is the very
            first, before which there is nothing to cut.

    Returns:
        The text; ``None`` where the fix makes no detach, or one that is not a statement by itself.
    """

    def seldom(name: str, cut: ast.expr, whole: ast.expr) -> ast.expr:
        turn = ast.parse(f"next({name}) % {iterations} == {iterations - 1 if late else 0}", mode="eval").body
        return ast.IfExp(turn, cut, whole)

    text = _otherwise(original, fixed, seldom)
    if text is None:
        return None
    lines, names = text
    counters = [f"{name} = _gradfix_count()" for name in names]
    return _with(lines, ["from itertools import count as _gradfix_count", *counters])


FIRST = """\
from copy import deepcopy as _gradfix_copied
def _gradfix_first(name, value, known={}):
    if name not in known:
        known[name] = _gradfix_copied(value)
    return _gradfix_copied(known[name])
"""
"""Gives what it was given first, whatever it is given later."""


def begun_anew(original: str, fixed: str) -> str | None:
    """The program ``fixed`` that begins anew, with what it held first, whatever it detaches and ``original``
    does not; ``None`` as for :func:`cut_every`."""

    def first(name: str, whole: ast.expr) -> ast.expr:
        return ast.Call(ast.Name("_gradfix_first"), [ast.Constant(name), whole], [])

    text = _otherwise(original, fixed, lambda name, cut, whole: first(name, whole), before_loop=first)
    return None if text is None else _with(text[0], FIRST.splitlines())


def attributes_begun_anew(text: str) -> list[str]:
    """The names of the attributes that a program of :func:`begun_anew` begins anew."""
    return [
        target.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign) and "_gradfix_first(" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    ]


def _with(lines: list[str], beginning: list[str]) -> str:
    """A program, with a beginning of its own."""
    at = _beginning(ast.parse("\n".join(lines))) - 1
    return "\n".join([*lines[:at], *beginning, *lines[at:]]) + "\n"


def _otherwise(
    original: str,
    fixed: str,
    value: Callable[[str, ast.expr, ast.expr], ast.expr],
    before_loop: Callable[[str, ast.expr], ast.expr] | None = None,
) -> tuple[list[str], list[str]] | None:
    """The lines of ``fixed``, in which assignments that ``original`` has not detach otherwise.

    Args:
        original: The program before the fix.
        fixed: The program after it.
        value: What is assigned, given a name, what was assigned, and that without its detaches.
        before_loop: What is evaluated before the loop that an assignment stands in, given the latter.

    Returns:
        The lines, and the names; ``None`` where there is no such assignment, or one of several statements.
    """
    lines = fixed.splitlines()
    matcher = difflib.SequenceMatcher(None, original.splitlines(), lines, autojunk=False)
    new = {
        line + 1
        for kind, _, _, start, stop in matcher.get_opcodes()
        if kind != "equal"
        for line in range(start, stop)
        if "detach" in lines[line]
    }
    try:
        tree = ast.parse(fixed)
    except SyntaxError:
        return None
    names: list[str] = []
    inserted: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or node.lineno not in new or node.end_lineno != node.lineno:
            continue
        row = lines[node.lineno - 1]
        rest = row.strip().removeprefix(ast.get_source_segment(fixed, node) or "?").strip()
        if rest and not rest.startswith("#"):
            return None
        whole = _Undetached().visit(copy.deepcopy(node.value))
        name = f"_gradfix_iterations_{len(names)}"
        assigned = ast.Assign(node.targets, value(name, node.value, whole), lineno=node.lineno)
        lines[node.lineno - 1] = row[: len(row) - len(row.lstrip())] + ast.unparse(assigned)
        loop = _innermost_loop(tree, node)
        if before_loop is not None and loop is not None:
            above = lines[loop - 1]
            evaluated = ast.unparse(before_loop(name, whole))
            inserted.append((loop - 1, above[: len(above) - len(above.lstrip())] + evaluated))
        names.append(name)
        new.discard(node.lineno)
    if new or not names:
        return None
    for at, line in sorted(inserted, reverse=True):
        lines.insert(at, line)
    return lines, names


def _innermost_loop(tree: ast.Module, inside: ast.stmt) -> int | None:
    """The line of the innermost loop around a statement, within the function that it stands in."""
    found: list[int] = []
    for node in ast.walk(tree):
        if inside in ast.walk(node) and isinstance(node, (ast.For, ast.While, ast.FunctionDef)):
            found.append(0 if isinstance(node, ast.FunctionDef) else node.lineno)
    return found[-1] if found and found[-1] else None


def _beginning(tree: ast.Module) -> int:
    """The line of the first statement that others may stand before."""
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            decorators = getattr(node, "decorator_list", [])
            return min([node.lineno, *(int(one.lineno) for one in decorators)])
    return 1


class _Undetached(ast.NodeTransformer):
    """Takes the detaches out of an expression."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "detach" and not node.args:
            return function.value
        return node
