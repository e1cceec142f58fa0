"""Iterables: what a loop binds from them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from gradfix.autograd import operators
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.arithmetic import numbered
from gradfix.autograd.semantics.dispatch import iterate, iterated
from gradfix.autograd.semantics.items import item_at, part
from gradfix.autograd.semantics.operations import apply, made_by
from gradfix.autograd.values import (
    NONE,
    Const,
    LazyIterable,
    Mapping,
    Module,
    Optimizer,
    ParameterIterable,
    PendingGenerator,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
    graphless_value,
    tensors_in,
)

Iterated = tuple[list[Value] | None, Callable[[int], Value]]


@iterated(Value)
def _iterate_other(run: Run, value: Value, site: ast.expr | None) -> Iterated:
    return None, lambda k: Unknown(EACH)


@iterated(Sequence)
def _iterate_sequence(run: Run, value: Sequence, site: ast.expr | None) -> Iterated:
    # One batch stands for as many as there will be.
    sample = value.grows and len(value.items) == 1 and not any(t.node for t in tensors_in(value))
    if not value.open and not sample:
        return value.items, lambda k: value.items[k % len(value.items)]
    if value.items:
        return None, lambda k: item_at(run, value, k, site)
    return None, lambda k: Unknown(EACH)


@iterated(Mapping)
def _iterate_mapping(run: Run, value: Mapping, site: ast.expr | None) -> Iterated:
    if not value.open:
        return [Const(k) for k in value.items], lambda k: NONE
    return None, lambda k: graphless_value("key")


@iterated(ParameterIterable)
def _iterate_parameters(run: Run, value: ParameterIterable, site: ast.expr | None) -> Iterated:
    if value.named:
        return [Sequence("tuple", [graphless_value("name"), SummaryTensor(value.leaves)])], lambda k: NONE
    return [SummaryTensor(value.leaves)], lambda k: NONE


@iterated(Module)
def _iterate_module(run: Run, value: Module, site: ast.expr | None) -> Iterated:
    if value.kind == "torch.nn.ModuleDict":
        return [Const(k) for k in value.attributes], lambda k: NONE
    if value.kind != "user" and value.leaf is None:
        return value.items, lambda k: NONE
    return None, lambda k: Unknown(EACH)


@iterated(Const)
def _iterate_constant(run: Run, value: Const, site: ast.expr | None) -> Iterated:
    if isinstance(value.value, str) and len(value.value) <= 16:
        return [Const(c) for c in value.value], lambda k: NONE
    return None, lambda k: Unknown(EACH)


@iterated(Tensor)
def _iterate_tensor(run: Run, value: Tensor, site: ast.expr | None) -> Iterated:
    def select(k: int) -> Value:
        table = operators.method("getitem.int_or_slice")
        if table is None or site is None:
            return Tensor(value.node, value.requires, value.storage)
        item = apply(run, table, [(value, site)], {}, site)
        if isinstance(item, Tensor):
            item.among = site  # ``__iter__`` takes it apart at once.
        return item

    return None, select


@iterated(Unknown)
def _iterate_unknown(run: Run, value: Unknown, site: ast.expr | None) -> Iterated:
    if value.node is not None:
        return None, lambda k: part(run, value, f"[{k}]", site)
    if value.graphless:
        return None, lambda k: graphless_value(EACH, value)
    if run.symbols is not None:
        each = run.symbols.part(value, Unknown(EACH), "[...]", site)
        # One optimizer stands for all that are gone through.
        return [each] if isinstance(each, Optimizer) else None, lambda k: each
    return None, lambda k: made_by(Unknown(EACH), value, [])


@iterated(LazyIterable)
def _iterate_lazy(run: Run, value: LazyIterable, site: ast.expr | None) -> Iterated:
    if value.kind == "range":
        origin = value.start or 0
        return None, numbered(origin)
    inner = [iterate(run, p, site) for p in value.parts]
    if value.kind == "enumerate":
        items, element = inner[0]
        if items is not None and value.start is not None:
            start = value.start
            return [
                Sequence(
                    "tuple", [graphless_value("index") if is_summary(item_) else Const(start + k), item_]
                )
                for k, item_ in enumerate(items)
            ], lambda k: NONE
        if value.start is None:
            return None, lambda k: Sequence("tuple", [graphless_value("index"), element(k)])
        number = numbered(value.start)
        return None, lambda k: Sequence("tuple", [number(k), element(k)])
    if value.kind == "zip":
        known = [items for items, _ in inner if items is not None]
        if known:
            # The shortest known one bounds the whole.
            count = min(len(items) for items in known)
            if count <= 64:
                return [
                    Sequence(
                        "tuple",
                        [items[k] if items is not None else element(k) for items, element in inner],
                    )
                    for k in range(count)
                ], lambda k: NONE
        return None, lambda k: Sequence("tuple", [element(k) for _, element in inner])
    items, element = inner[0]
    if items is not None and value.kind == "reversed":
        return items[::-1], lambda k: NONE
    return items, element


def extend(run: Run, target: Sequence, value: Value) -> None:
    """``list += value``."""
    items, _ = iterate(run, value, None)
    if items is None:
        target.open = True
    else:
        target.add(items)


EACH = "each item"
"""The label of what a loop takes out of something unknown."""


class GeneratorLoop(NamedTuple):
    """What a loop goes over where that is a generator of the project."""

    call: PendingGenerator
    item: Callable[[Value], Value]
    """What the loop is handed of what is yielded."""


def generator(iterable: Value) -> GeneratorLoop | None:
    """The generator behind something to go over, also in ``enumerate``."""
    if isinstance(iterable, PendingGenerator):
        return GeneratorLoop(iterable, lambda value: value)
    if isinstance(iterable, LazyIterable) and iterable.kind == "enumerate":
        (part,) = iterable.parts
        if isinstance(part, PendingGenerator):
            return GeneratorLoop(part, lambda value: Sequence("tuple", [graphless_value("index"), value]))
    return None


def is_summary(item: Value) -> bool:
    """Whether an item stands for all parameters of something, by itself or beside their names."""
    return isinstance(item, SummaryTensor) or (
        isinstance(item, Sequence) and any(map(is_summary, item.items))
    )
