"""Assignments of all forms."""

from __future__ import annotations

import ast

from gradfix.autograd.run import ControlFlow, Run, expression, statement
from gradfix.autograd.semantics import dispatch
from gradfix.autograd.semantics.arithmetic import binary, counted, inplace_binary
from gradfix.autograd.semantics.attributes import set_attribute
from gradfix.autograd.semantics.items import delete_item, set_item
from gradfix.autograd.semantics.iteration import extend
from gradfix.autograd.semantics.operations import graphs_of, weak_update, write_to_all
from gradfix.autograd.values import (
    Const,
    Frame,
    Instance,
    IterationNumber,
    Module,
    Optimizer,
    Sequence,
    SummaryTensor,
    Tensor,
    Unknown,
    Value,
)


def counts_iterations(run: Run, target: ast.expr, frame: Frame) -> bool:
    """Whether a variable counts the iterations of a loop of unknown length: it was there before the loop."""
    if not isinstance(target, ast.Name):
        return bool(run.symbolic)
    return any(home is frame and target.id in names for home, names in run.counters)


@statement(ast.Assign)
def _assign(run: Run, node: ast.Assign, frame: Frame) -> ControlFlow:
    value = run.evaluate(node.value, frame)
    for target in node.targets:
        assign(run, target, value, frame, node.value)
    return None


@statement(ast.AnnAssign)
def _annotated(run: Run, node: ast.AnnAssign, frame: Frame) -> ControlFlow:
    if node.value is not None:
        assign(run, node.target, run.evaluate(node.value, frame), frame, node.value)
    return None


def assign(run: Run, target: ast.expr, value: Value, frame: Frame, source: ast.expr | None) -> None:
    """Bind ``value`` to a target of any form."""
    kind = target.__class__
    if kind is ast.Name:
        name = target.id  # type: ignore[attr-defined]
        holder = frame.binding_frame(name) if frame.nonlocals else frame
        holder.variables[name] = value
    elif kind is ast.Attribute:
        set_attribute(run, run.evaluate(target.value, frame), target.attr, value, target)  # type: ignore[attr-defined]
    elif kind is ast.Subscript:
        set_item(run, target, value, frame)  # type: ignore[arg-type]
    elif kind in (ast.Tuple, ast.List):
        _unpack(run, target.elts, value, frame, source)  # type: ignore[attr-defined]
    elif kind is ast.Starred:
        assign(run, target.value, value, frame, None)  # type: ignore[attr-defined]


def _unpack(run: Run, targets: list[ast.expr], value: Value, frame: Frame, source: ast.expr | None) -> None:
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if isinstance(value, Sequence) and not value.open:
        items = value.items
        if starred is None and len(items) == len(targets):
            for target, item in zip(targets, items):
                assign(run, target, item, frame, None)
            return
        if starred is not None and len(items) >= len(targets) - 1:
            tail = len(targets) - starred - 1
            middle = items[starred : len(items) - tail]
            parts = [*items[:starred], Sequence("list", middle), *items[len(items) - tail :]]
            for target, item in zip(targets, parts):
                assign(run, target, item, frame, None)
            return
    for number, target in enumerate(targets):
        handed = _handed_back(run, target, value, frame, source)
        if handed is not None:
            assign(run, target, handed, frame, None)
            continue
        part = dispatch.item(run, value, Const(number), source or target)
        if isinstance(value, Tensor) and isinstance(part, Tensor):
            part.among = source or target
        assign(run, target, part, frame, None)


def _handed_back(
    run: Run, target: ast.expr, value: Value, frame: Frame, source: ast.expr | None
) -> Value | None:
    """What a target names in a world, if a call out of sight prepares it: ``net, opt = half(net, opt)``."""
    if run.symbols is None or not isinstance(value, Unknown) or not isinstance(source, ast.Call):
        return None
    given = [*source.args, *(keyword.value for keyword in source.keywords)]
    written = ast.unparse(target)
    argument = next((one for one in given if ast.unparse(one) == written), None)
    if argument is None:
        return None
    handed = run.evaluate(argument, frame)
    if isinstance(handed, (Module, Optimizer)) or (isinstance(handed, Unknown) and handed.leaf is not None):
        run.symbols.handed_back[ast.unparse(source.func)] = None
        return handed
    return None


@statement(ast.AugAssign)
def _augmented(run: Run, node: ast.AugAssign, frame: Frame) -> ControlFlow:
    target = node.target
    old = run.evaluate(target, frame)
    operand = run.evaluate(node.value, frame)
    if isinstance(old, Tensor):
        changed = inplace_binary(run, old, operand, node)
        if not isinstance(target, ast.Name):
            # x[i] += y writes back through the container; the tensor itself has changed in place.
            if isinstance(target, ast.Subscript):
                set_item(run, target, changed, frame)
            else:
                assign(run, target, changed, frame, None)
            return None
        assign(run, target, changed, frame, None)
        return None
    if isinstance(old, SummaryTensor):
        nothing = isinstance(node.op, ast.Mult) and isinstance(operand, Const) and operand.value == 0
        sources = graphs_of(operand) if old.view == "" else ()
        write_to_all(run, old, node, emptied=nothing, sources=sources)
        return None
    if isinstance(old, Sequence) and old.kind == "list" and isinstance(node.op, ast.Add):
        extend(run, old, operand)
        run.store(operand, node.value, old)
        return None
    if (
        isinstance(old, (Const, IterationNumber))
        and isinstance(operand, Const)
        and counts_iterations(run, target, frame)
    ):
        named = isinstance(target, ast.Name)
        value = counted(node.op, old, operand) if named else Unknown("counter")
        assign(run, target, value, frame, None)
        return None
    result = binary(run, node.op, old, operand, node.target, node.value, node)
    if old.__class__ is Unknown and old.storage is not None:
        # Of a number this makes another one, a tensor is changed in place.
        weak_update(old)
        if result.__class__ is Unknown:
            result.storage = old.storage
        elif isinstance(result, Tensor):
            result.storage.may_be(old.storage)
    assign(run, target, result, frame, None)
    return None


@statement(ast.Delete)
def _delete(run: Run, node: ast.Delete, frame: Frame) -> ControlFlow:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.variables.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            delete_item(run, target, frame)
        elif isinstance(target, ast.Attribute):
            holder = run.evaluate(target.value, frame)
            if isinstance(holder, (Module, Instance, Unknown)):
                holder.attributes.pop(target.attr, None)
                run.mutations += 1
    return None


@expression(ast.NamedExpr)
def _walrus(run: Run, node: ast.NamedExpr, frame: Frame) -> Value:
    value = run.evaluate(node.value, frame)
    assign(run, node.target, value, frame, node.value)
    return value
