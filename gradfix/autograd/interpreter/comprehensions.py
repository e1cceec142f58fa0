"""Comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradfix.autograd.graph import Leaf
from gradfix.autograd.interpreter.assignments import assign
from gradfix.autograd.interpreter.conditions import decide, truth
from gradfix.autograd.parameters import go_through
from gradfix.autograd.run import Run, expression
from gradfix.autograd.semantics import dispatch
from gradfix.autograd.semantics.names import asks_for_gradient
from gradfix.autograd.values import (
    Const,
    Frame,
    Mapping,
    ParameterIterable,
    Sequence,
    SummaryTensor,
    Unknown,
    Value,
    tensors_in,
)


@expression(ast.ListComp, ast.SetComp, ast.GeneratorExp)
def _comprehension(run: Run, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Value:
    inner = Frame(frame, frame.function)
    out: list[Value] = []
    # What differentiates for each of unknown things does so for more than one.
    often = 2 if run.relevance.differentiates(node) else 1
    complete = _generate(
        run, node.generators, 0, inner, lambda: out.append(run.evaluate(node.elt, inner)), often
    )
    kind = "tuple" if isinstance(node, ast.GeneratorExp) else "list"
    if len(out) == 1 and isinstance(out[0], SummaryTensor) and out[0].view == "":
        lazy = isinstance(node, ast.GeneratorExp)
        picked = ParameterIterable(out[0].leaves, complete, made=node if lazy else None)
        picked.selection = _half(node.generators)
        if picked.selection is not None:
            source = run.evaluate(node.generators[0].iter, frame)
            if isinstance(source, ParameterIterable) and not source.complete:
                picked.selection = None
        return picked
    own = [v for v in out if isinstance(v, SummaryTensor) and v.view == ""]
    if own:  # What is computed of parameters' data or gradients is no parameter.
        leaves = [leaf for v in own for leaf in v.leaves]
        return ParameterIterable(leaves, complete)
    return Sequence(kind, out, not complete)


COMPLEMENTS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.NotEq: ast.Eq,
    ast.NotIn: ast.In,
    ast.IsNot: ast.Is,
}


def _half(generators: list[ast.comprehension]) -> tuple[str, bool] | None:
    """The one condition of a comprehension, and whether it has to hold: another may pick what is left out."""
    if len(generators) != 1 or len(generators[0].ifs) != 1:
        return None
    test, holds = generators[0].ifs[0], True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    text = ast.dump(test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in COMPLEMENTS:
        other = COMPLEMENTS[type(test.ops[0])]()
        text, holds = ast.dump(ast.Compare(test.left, [other], test.comparators)), not holds
    return text, holds


@expression(ast.DictComp)
def _dict_comprehension(run: Run, node: ast.DictComp, frame: Frame) -> Value:
    inner = Frame(frame, frame.function)
    out: dict[Any, Value] = {}
    named: list[Leaf] = []
    unknown = False

    def add() -> None:
        nonlocal unknown
        key, value = run.evaluate(node.key, inner), run.evaluate(node.value, inner)
        if isinstance(key, Const) and isinstance(key.value, (str, int)):
            out[key.value] = value
        else:
            unknown = True
            if isinstance(value, SummaryTensor) and value.view == "":
                named.extend(value.leaves)
            elif tensors_in(value):
                out[node.key] = value  # Under which key it is found is not known, but it is held.

    complete = _generate(run, node.generators, 0, inner, add, 2 if run.relevance.differentiates(node) else 1)
    if named and not out:
        return ParameterIterable(named, complete, named=True)
    return Mapping(out, unknown or not complete)


def _generate(
    run: Run,
    generators: list[ast.comprehension],
    level: int,
    frame: Frame,
    emit: Callable[[], None],
    often: int = 1,
) -> bool:
    """Run a comprehension's loops, those over unknown things so ``often``; returns whether all were known."""
    if level == len(generators):
        emit()
        return True
    generator = generators[level]
    iterable = run.evaluate(generator.iter, frame)
    go_through(run, iterable, generator.iter)
    items, element = dispatch.iterate(run, iterable, generator.iter)
    complete = items is not None and len(items) <= 64
    if isinstance(items, list) and len(items) > 64:
        items = items[:2]
    if items is None:
        items = [element(number) for number in range(often)]
    for item in items:
        run.charge(1)
        tests = [t for t in generator.ifs if not asks_for_gradient(t, generator.target)]
        named = isinstance(item, Sequence) and len(item.items) == 2
        each = item.items[1] if isinstance(item, Sequence) and named else item
        if isinstance(each, SummaryTensor) and len(tests) < len(generator.ifs):
            # Those that are left out get no gradient: to whoever wants it, all are there.
            each = SummaryTensor([leaf for leaf in each.leaves if leaf.requires is not False], each.view)
            item = Sequence("tuple", [item.items[0], each]) if isinstance(item, Sequence) else each
        else:
            tests = generator.ifs
        assign(run, generator.target, item, frame, None)
        keep = True
        for test in tests:
            value = run.evaluate(test, frame)
            known = truth(value)
            if known is None and isinstance(test, ast.Name) and _is_a_setting(value) and items is not None:
                # Flags beside what they switch on: ``[l for l, on in zip(losses, flags) if on]``.
                known = decide(run, test, frame)
            if known is None:
                complete = False
            keep = keep and known is not False
        if keep:
            complete = _generate(run, generators, level + 1, frame, emit, often) and complete
    return complete


def _is_a_setting(value: Value) -> bool:
    """Whether something has nothing to do with tensors: what was computed of options, for one."""
    return isinstance(value, Unknown) and value.node is None and not value.made and value.requires is False
