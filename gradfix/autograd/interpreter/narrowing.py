"""Type narrowing: what a test of its type says about a variable in the branch where it holds.

Where ``type(loss) == float`` or ``not isinstance(loss, Tensor)`` is true, ``loss`` is no tensor and has no
graph, whatever it is elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from gradfix.autograd.run import Run
from gradfix.autograd.semantics.names import NO_TENSORS, OF_TENSORS, TENSORS
from gradfix.autograd.values import Frame, ImportedName, Sequence, Tensor, Unknown, Value, graphless_value
from gradfix.core.syntax import last_name


class _Asked(NamedTuple):
    """A question about the type of a variable."""

    name: str
    kinds: ast.expr | None
    """The types that are asked about; None where the question is whether it is a tensor."""
    exact: bool = False
    """Whether subclasses do not count, as in ``type(x) == T``."""


@contextmanager
def narrowed(run: Run, test: ast.expr, holds: bool, frame: Frame) -> Iterator[None]:
    """Run a branch in which ``test`` holds, or does not, with what that says of the variables in it."""
    restored: list[tuple[Frame, str, Value, Value]] = []
    for asked, positive in _answered(test, holds):
        home = frame.binding_frame(asked.name) if frame.nonlocals else frame
        known = home.variables.get(asked.name)
        if known is None or not _is_vague(known) or not _excludes_tensors(run, asked, positive, frame):
            continue
        number: Value = graphless_value(asked.name)
        home.variables[asked.name] = number
        restored.append((home, asked.name, number, known))
    try:
        yield
    finally:
        for home, name, number, known in restored:
            if home.variables.get(name) is number:
                home.variables[name] = known


def _is_vague(value: Value) -> bool:
    """Whether a value may or may not be a tensor."""
    return isinstance(value, Unknown) or (isinstance(value, Tensor) and value.requires is None)


def _excludes_tensors(run: Run, asked: _Asked, positive: bool, frame: Frame) -> bool:
    """Whether an answer about the type of something says that it is no tensor."""
    if asked.kinds is None:
        return not positive
    kinds = run.evaluate(asked.kinds, frame)
    listed = kinds.items if isinstance(kinds, Sequence) else [kinds]
    names = [kind.name if isinstance(kind, ImportedName) else "" for kind in listed]
    if positive:
        return bool(names) and NO_TENSORS.issuperset(names)
    return not asked.exact and not TENSORS.isdisjoint(names)


@lru_cache(maxsize=1024)
def _answered(test: ast.expr, holds: bool) -> list[tuple[_Asked, bool]]:
    """The questions about types that a condition answers if it holds, or if it does not, with the answers."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _answered(test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        # All parts of a conjunction that is true are true, and all of a disjunction that is false are false.
        decided = isinstance(test.op, ast.And) is holds
        return [answer for part in test.values for answer in _answered(part, holds)] if decided else []
    asked = _question(test)
    return [] if asked is None else [(asked[0], holds is asked[1])]


def _question(test: ast.expr) -> tuple[_Asked, bool] | None:
    """The question about a type that an expression asks, and whether the expression is true if it is so."""
    if isinstance(test, ast.Call) and test.args and isinstance(test.args[0], ast.Name):
        name = test.args[0].id
        if last_name(test) == "isinstance" and len(test.args) == 2:
            return _Asked(name, test.args[1]), True
        if last_name(test) == "is_tensor":
            return _Asked(name, None), True
        if last_name(test) == "hasattr" and len(test.args) == 2 and isinstance(test.args[1], ast.Constant):
            return (_Asked(name, None), True) if test.args[1].value in OF_TENSORS else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        of = _typed(test.left)
        if of is not None and isinstance(test.ops[0], (ast.Is, ast.Eq, ast.In)):
            return _Asked(of, test.comparators[0], True), True
        if of is not None and isinstance(test.ops[0], (ast.IsNot, ast.NotEq, ast.NotIn)):
            return _Asked(of, test.comparators[0], True), False
    return None


def _typed(node: ast.expr) -> str | None:
    """The variable in ``type(x)`` and in ``x.__class__``."""
    if isinstance(node, ast.Attribute) and node.attr == "__class__" and isinstance(node.value, ast.Name):
        return node.value.id
    if isinstance(node, ast.Call) and last_name(node) == "type" and len(node.args) == 1:
        return node.args[0].id if isinstance(node.args[0], ast.Name) else None
    return None
