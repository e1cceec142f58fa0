"""Arithmetic on tensors, constants, sequences and the numbers of iterations."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradfix.autograd import operators, script_options
from gradfix.autograd.iteration_numbers import NUMBER, LoopIteration, NumberExpression
from gradfix.autograd.parameters import leaves_of, wholes_of
from gradfix.autograd.run import Run, used_none
from gradfix.autograd.semantics.operations import apply, changed_in_place, operands_of, record, unknown
from gradfix.autograd.values import (
    NONE,
    Const,
    GrowingLength,
    IterationNumber,
    ParameterIterable,
    Recurring,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    fold,
    graphless_value,
    hides_graph,
    known_items,
    lost_in,
)


def binary(
    run: Run,
    op: ast.operator,
    left: Value,
    right: Value,
    left_node: ast.expr,
    right_node: ast.expr,
    site: ast.AST,
) -> Value:
    """``left op right``."""
    if left is NONE or right is NONE:
        used_none(run, site)
    if isinstance(op, ast.Mod) and _is_number(left) and _is_number(right):
        recurring = not (isinstance(left, (Const, IterationNumber)) and isinstance(right, Const))
        if recurring:
            return Recurring(False)
    if left.__class__ is not Tensor:
        value = _of_what_is_known(op, left, right)
        if value is not None:
            return value
    graph = operands_of(left, left_node) + operands_of(right, right_node)
    if not any(o.requires is not False for o in graph):
        return _without_graph(run, left, right, bool(graph))
    scalar: Any = None
    if isinstance(left, Const):
        scalar = "left"
    elif isinstance(right, Const):
        scalar = "right"
    table = operators.binary(op.__class__.__name__, scalar)
    args = [(left, left_node), (right, right_node)]
    if table is None:
        return unknown(run, args, {}, site, op.__class__.__name__)
    return apply(run, table, args, {}, site)


def _is_number(value: Value) -> bool:
    """Whether a value is taken for a number, known or not."""
    if isinstance(value, Const):
        return isinstance(value.value, (int, float))
    return isinstance(value, Unknown) and (
        value.graphless or (value.__class__ is Unknown and value.node is None)
    )


def _without_graph(run: Run, left: Value, right: Value, tensors: bool) -> Value:
    """What comes of two operands of which none is seen to have a graph: what is unknown may have one."""
    vague = run.grad_enabled is not False and (hides_graph(left) or hides_graph(right))
    result: Unknown | Tensor
    # The data of a parameter, and what is computed from it, have no graph.
    if tensors or isinstance(left, SummaryTensor) or isinstance(right, SummaryTensor):
        result = Tensor(None, None if vague else False)
    else:
        result = Unknown("value")
        result.graphless = not vague
    result.lost = lost_in((left, right)) if run.graphs_ended and not vague else None
    return result


def _of_what_is_known(op: ast.operator, left: Value, right: Value) -> Value | None:
    """``left op right`` of numbers, texts and lists; None if it is none of these."""
    if isinstance(left, script_options.ScriptOption) or isinstance(right, script_options.ScriptOption):
        known = [side.value for side in map(script_options.given, (left, right)) if isinstance(side, Const)]
        if len(known) == 2 and any(isinstance(one, str) for one in known):
            return script_options.text(fold(op, *known), (left, right))
    if isinstance(left, Const):
        if isinstance(right, Const):
            folded = fold(op, left.value, right.value)
            if left.__class__ is GrowingLength or right.__class__ is GrowingLength:
                shifted = isinstance(op, (ast.Add, ast.Sub)) and right.__class__ is not GrowingLength
                return (
                    GrowingLength(folded.value)
                    if shifted and isinstance(folded, Const)
                    else Unknown("length")
                )
            unset = left.__class__ is script_options.Default or right.__class__ is script_options.Default
            return script_options.Default(folded.value) if unset and isinstance(folded, Const) else folded
        if isinstance(op, ast.Mod) and isinstance(left.value, str):
            items = known_items(right)
            return Unknown("text") if items is None else fold(op, left.value, items)
    elif isinstance(left, Unknown) and left.__class__ is Unknown and left.node is None:
        if isinstance(right, Const):
            return graphless_value("value", left) if left.graphless else Unknown("value")
    if isinstance(left, IterationNumber) or isinstance(right, IterationNumber):
        counted = _counted(op, left, right)
        if counted is not None:
            return counted
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(op, ast.Add):
        return Sequence(left.kind, left.items + right.items, left.open or right.open)
    if (
        isinstance(left, (ParameterIterable, Sequence))
        and isinstance(right, (ParameterIterable, Sequence))
        and isinstance(op, ast.Add)
    ):
        leaves, complete = leaves_of(left)
        more, also = leaves_of(right)
        together = ParameterIterable(list(dict.fromkeys(leaves + more)), complete and also)
        together.whole_networks = wholes_of(Sequence("list", [left, right]))
        return together
    if isinstance(left, Sequence) and isinstance(op, ast.Mult) and isinstance(right, Const):
        if isinstance(right.value, int) and len(left.items) * right.value <= 64:
            return Sequence(left.kind, left.items * right.value, left.open)
        return Sequence(left.kind, left.items, True)
    return None


def _counted(op: ast.operator, left: Value, right: Value) -> IterationNumber | None:
    """Arithmetic on the number of an iteration."""
    numbers = [
        v.number if isinstance(v, IterationNumber) else getattr(v, "value", None) for v in (left, right)
    ]
    if not all(isinstance(n, (int, float)) for n in numbers):
        return None
    result = fold(op, *numbers)
    if not isinstance(result, Const):
        return None
    steady = [v.counts if isinstance(v, IterationNumber) else isinstance(v, Const) for v in (left, right)]
    passed, term = of_iteration(op.__class__, left, right)
    return IterationNumber(result.value, all(steady) and isinstance(op, (ast.Add, ast.Sub)), passed, term)


def of_iteration(
    op: type[ast.AST], left: Value, right: Value
) -> tuple[LoopIteration | None, NumberExpression]:
    """How ``left op right`` is computed from the number of one iteration, if it is: else of no iteration."""
    iterations = {v.iteration for v in (left, right) if isinstance(v, IterationNumber)}
    terms = [
        v.term if isinstance(v, IterationNumber) else ("const", getattr(v, "value", None))
        for v in (left, right)
    ]
    return (iterations.pop() if len(iterations) == 1 else None), (op, *terms)


def counted(op: ast.operator, old: Const | IterationNumber, step: Const) -> Value:
    """What ``count op= step`` makes of a variable from before the loop: each time it is another iteration."""
    if isinstance(old, Const):
        whole = type(old.value) is int and isinstance(op, (ast.Add, ast.Sub))
        first = fold(op, old.value, step.value) if whole else None
        if not isinstance(first, Const):
            return Unknown("counter")
        term: NumberExpression = (
            op.__class__,
            ("const", first.value),
            (ast.Mult, NUMBER, ("const", step.value)),
        )
        return IterationNumber(first.value, True, LoopIteration(), term)
    value = _counted(op, old, step)
    if value is not None and old.iteration is not None and value.counts:
        return IterationNumber(value.number, True, LoopIteration(old.iteration), old.term)
    return value if value is not None else Unknown("counter")


def numbered(origin: int) -> Callable[[int], IterationNumber]:
    """What gives the number of each iteration of a loop that counts from ``origin``."""
    latest: list[LoopIteration] = []
    term = (ast.Add, NUMBER, ("const", origin)) if origin else NUMBER

    def number(k: int) -> IterationNumber:
        latest.append(LoopIteration(latest[-1] if latest else None))
        return IterationNumber(origin + k, True, latest[-1], term)

    return number


def inplace_binary(run: Run, old: Tensor, operand: Value, node: ast.AugAssign) -> Tensor:
    """``tensor op= operand``: changes the tensor in place."""
    table = operators.augmented(node.op.__class__.__name__, isinstance(operand, Const))
    target: ast.expr = node.target
    if table is None:
        slots = [operands_of(old, target), operands_of(operand, node.value)]
        recorded, requires, _ = record(run, "augmented", node, slots, None)
        return changed_in_place(run, old, recorded, requires, False, "augmented assignment", node)
    result = apply(run, table, [(old, target), (operand, node.value)], {}, node)
    return result if isinstance(result, Tensor) else old
