"""Comparisons, those with the number of an iteration included."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradfix.autograd.iteration_numbers import ORDER
from gradfix.autograd.run import Run, expression
from gradfix.autograd.semantics.arithmetic import of_iteration
from gradfix.autograd.semantics.names import TYPES
from gradfix.autograd.values import (
    Const,
    Frame,
    GrowingLength,
    ImportedName,
    Instance,
    IterationNumber,
    Mapping,
    Module,
    NumberAnswer,
    NumberCondition,
    Optimizer,
    Recurring,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    graphless_value,
)


def _identical(left: Any, right: Any) -> bool:
    """``left is right`` of constants, of which Python keeps one of each."""
    return left is right or (type(left) is type(right) and bool(left == right))


COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    **ORDER,
    ast.Is: _identical,
    ast.IsNot: lambda a, b: not _identical(a, b),
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


SHORT = 2
"""Up to this length of a growing list, the iterations that are run show every case."""


def _against_length(op: ast.cmpop, left: Const, right: Const) -> Const | Unknown:
    """How a comparison of what a list holds comes out, as long as it stays so: the list grows."""
    how = op.__class__
    if left.__class__ is not GrowingLength:
        left, right, how = right, left, MIRRORED.get(how, how)
    if right.__class__ is GrowingLength or not isinstance(right.value, (int, float)):
        return graphless_value("condition")
    held = bool(COMPARE[how](left.value, right.value)) if how in COMPARE else None
    stays = (how in (ast.Gt, ast.GtE) and held) or (how in (ast.Lt, ast.LtE) and held is False)
    if how in (ast.Eq, ast.NotEq):
        stays = left.value > right.value
    return (
        Const(held) if stays or (held is not None and right.value <= SHORT) else graphless_value("condition")
    )


@expression(ast.Compare)
def _compare(run: Run, node: ast.Compare, frame: Frame) -> Value:
    left = run.evaluate(node.left, frame)
    rights = [run.evaluate(c, frame) for c in node.comparators]
    if len(rights) == 1:
        op, right = node.ops[0], rights[0]
        if isinstance(op, AMONG) and isinstance(left, IterationNumber):
            right = _choices(right)
        held = _held(op, left, right)
        if held is not None:
            passed, term = of_iteration(op.__class__, left, right)
            known = passed.holds(term) if passed is not None else None
            numbered = _number(left, right) is not left or _number(right, left) is not right
            if known is None and passed is not None and numbered:
                known = held
                passed.learn(term, held)
            if passed is not None and known is not None:
                return NumberAnswer(known, node, passed.flips(term, known))
        left, right = _number(left, right), _number(right, left)
        if isinstance(left, Const) and isinstance(right, Const):
            if left.__class__ is GrowingLength or right.__class__ is GrowingLength:
                return _against_length(op, left, right)
            try:
                return Const(bool(COMPARE[op.__class__](left.value, right.value)))
            except Exception:
                return graphless_value("condition")
        known_types = _of_types(op, left, right)
        if known_types is not None:
            return Const(known_types)
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = None
            if isinstance(right, Const) and right.value is None and not isinstance(left, (Unknown, Const)):
                same = isinstance(left, SummaryTensor) and left.is_none()
            elif isinstance(left, (Module, Optimizer, Instance)) and isinstance(
                right, (Module, Optimizer, Instance)
            ):
                same = left is right
            if same is not None:
                return Const(same is isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)) and isinstance(left, Const):
            holds = None
            if isinstance(right, Mapping) and not right.open:
                holds = left.value in right.items
            elif (
                isinstance(right, Sequence)
                and not right.open
                and all(isinstance(i, Const) for i in right.items)
            ):
                holds = any(i.value == left.value for i in right.items if isinstance(i, Const))
            if holds is not None:
                return Const(holds is isinstance(op, ast.In))
        if held is not None:
            return NumberCondition(held, passed, term)
        if isinstance(left, Recurring) and isinstance(right, Const) and isinstance(op, (ast.Eq, ast.NotEq)):
            return Recurring(isinstance(op, ast.Eq))
    elif all(isinstance(v, Const) for v in (left, *rights)):
        values = [v.value for v in (left, *rights) if isinstance(v, Const)]
        try:
            pairs = zip(node.ops, values, values[1:])
            return Const(all(COMPARE[op.__class__](a, b) for op, a, b in pairs))
        except Exception:
            return graphless_value("condition")
    if isinstance(left, Tensor) and not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        mask = Tensor()
        mask.lost = run.graph_end(left, node)
        return mask
    return graphless_value("condition", left, *rights)


def _of_types(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """What a comparison of types comes to: ``type(loss) == float``, ``type(loss) in (int, float)``."""
    among = isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, Sequence) and not right.open
    listed = right.items if among and isinstance(right, Sequence) else [right]
    kinds = [kind.name for kind in (left, *listed) if isinstance(kind, ImportedName) and kind.name in TYPES]
    if len(kinds) <= len(listed) or not (among or isinstance(op, (ast.Is, ast.Eq, ast.IsNot, ast.NotEq))):
        return None
    return (kinds[0] in kinds[1:]) is isinstance(op, (ast.Is, ast.Eq, ast.In))


def _number(value: Value, other: Value) -> Value:
    """The number of an iteration, where it is compared to one of the iterations that are run.

    A comparison with a larger number (after a warm-up, every hundredth batch) may come out either way.
    """
    if (
        isinstance(value, IterationNumber)
        and value.counts
        and isinstance(other, Const)
        and other.value in (0, 1, 2)
    ):
        return Const(value.number)
    return value


AMONG = (ast.In, ast.NotIn)


def _choices(value: Value) -> Value:
    """A list, tuple or set of numbers as one constant."""
    if not isinstance(value, Sequence) or value.open or not value.items:
        return value
    numbers = [getattr(item, "value", None) for item in value.items]
    return Const(tuple(numbers)) if all(isinstance(n, (int, float)) for n in numbers) else value


def _held(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """What a comparison of numbers of iterations comes to in this iteration."""
    if not (isinstance(left, IterationNumber) or isinstance(right, IterationNumber)):
        return None
    numbers = [
        v.number if isinstance(v, IterationNumber) else getattr(v, "value", None) for v in (left, right)
    ]
    wanted = (int, float, tuple) if op.__class__ in AMONG else (int, float)
    if not (isinstance(numbers[0], (int, float)) and isinstance(numbers[1], wanted)):
        return None
    if op.__class__ not in ORDER or (op.__class__ in AMONG and not isinstance(numbers[1], tuple)):
        return None
    return bool(COMPARE[op.__class__](*numbers))
