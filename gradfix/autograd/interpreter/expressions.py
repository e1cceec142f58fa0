"""Expressions other than calls, comparisons and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gradfix.autograd import imports, script_options, unbound
from gradfix.autograd.interpreter.calls import call_expression
from gradfix.autograd.interpreter.choices import chosen_by_name
from gradfix.autograd.interpreter.conditions import evaluated_again, truth
from gradfix.autograd.parameters import leaves_of, wholes_of
from gradfix.autograd.run import ControlFlow, Impossible, Run, expression, statement
from gradfix.autograd.semantics import dispatch
from gradfix.autograd.semantics.arithmetic import binary
from gradfix.autograd.semantics.builtin import known_type
from gradfix.autograd.semantics.external import starred
from gradfix.autograd.semantics.items import keyed, slice_of
from gradfix.autograd.semantics.libraries import HARMLESS, NOTEBOOK
from gradfix.autograd.semantics.names import BUILTINS, member
from gradfix.autograd.semantics.operations import as_tensor, simple
from gradfix.autograd.values import (
    FALSE,
    LONGEST,
    NONE,
    TRUE,
    Const,
    Frame,
    Function,
    GradMode,
    GrowingLength,
    ImportedName,
    Mapping,
    Module,
    ParameterIterable,
    Recurring,
    Sequence,
    Tensor,
    Unknown,
    Value,
    graphless_value,
    spelled,
)
from gradfix.core.syntax import children


@statement(ast.Expr)
def _expression(run: Run, node: ast.Expr, frame: Frame) -> ControlFlow:
    value = node.value
    if isinstance(value, ast.Call):
        function = value.func
        if isinstance(function, ast.Attribute) and function.attr == "add_argument":
            script_options.learn(run.evaluate(function.value, frame), value)
            return None
        acts = run.relevance.touches(node) or run.relevance.evaluates(node)
        if not acts and _only_tells(run, function, frame):
            _compute_calls(run, value, frame)
            return None
        result = call_expression(run, value, frame, discarded=True)
        if isinstance(result, GradMode) and result.switch:
            run.grad_enabled = result.enabled
    elif not isinstance(value, ast.Constant):
        run.evaluate(value, frame)
    return None


def _compute_calls(run: Run, outer: ast.Call, frame: Frame) -> None:
    """Run the calls of the project within a call that only prints: ``print(f"{evaluate(net,
    loader):.3f}")``; and those of torch that work in place."""
    for call in _calls_within(outer):
        function = evaluated_again(run, call.func, frame)
        in_place = isinstance(function, ImportedName) and function.name.endswith("_")
        if in_place or isinstance(function, (Function, Module)):
            run.evaluate(call, frame)
        else:
            _compute_calls(run, call, frame)


@lru_cache(maxsize=4096)
def _calls_within(outer: ast.Call) -> tuple[ast.Call, ...]:
    """The calls within a call that are in no other one."""
    found: list[ast.Call] = []
    work = children(outer)
    for node in work:
        if isinstance(node, ast.Call):
            found.append(node)
        else:
            work += children(node)
    return tuple(found)


def _only_tells(run: Run, function: ast.expr, frame: Frame) -> bool:
    """Whether a call whose result is dropped only prints, logs, plots or saves."""
    below: list[str] = []
    while isinstance(function, ast.Attribute):
        below.insert(0, function.attr)
        function = function.value
    if not isinstance(function, ast.Name):
        return False
    if function.id == "print":
        return True
    value = _name(run, function, frame)
    if isinstance(value, ImportedName):
        known = ".".join((value.name, *below)) in dispatch.FUNCTIONS
        return not known and value.name.split(".", 1)[0] in HARMLESS
    return isinstance(value, Unknown) and value.harmless


@expression(ast.Constant)
def _constant(run: Run, node: ast.Constant, frame: Frame) -> Value:
    value = node.value
    if value is None:
        return NONE
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    return Const(value)


@expression(ast.Name)
def _name(run: Run, node: ast.Name, frame: Frame) -> Value:
    name = node.id
    at: Frame | None = frame.binding_frame(name) if frame.nonlocals else frame
    while at is not None:
        value = at.variables.get(name)
        if value is None and at.definitions is not None:
            value = at.definitions.find(name, at, run.define)
        if value is not None:
            return imports.settled(run, at, name, value) if value.__class__ is imports.Lazy else value
        at = at.parent
    value = starred(run, name)
    if value is None:
        home = "builtins" if name in BUILTINS else NOTEBOOK.get(name)
        value = Unknown(name) if home is None else member(home, name)
    if isinstance(value, Unknown):
        if run.scenario.other and unbound.missing_variable(run.tree, frame, name):
            raise Impossible
        # The same unknown name is the same unknown value wherever it is read.
        run.globals.variables[name] = value
    return value


@expression(ast.Attribute)
def _attribute(run: Run, node: ast.Attribute, frame: Frame) -> Value:
    value = run.evaluate(node.value, frame)
    if node.attr == "__class__" and (kind := known_type(value)) is not None:
        return kind
    return dispatch.attribute(run, value, node.attr, node)


@expression(ast.BinOp)
def _binary(run: Run, node: ast.BinOp, frame: Frame) -> Value:
    left, right = run.evaluate(node.left, frame), run.evaluate(node.right, frame)
    return binary(run, node.op, left, right, node.left, node.right, node)


@expression(ast.UnaryOp)
def _unary(run: Run, node: ast.UnaryOp, frame: Frame) -> Value:
    value = run.evaluate(node.operand, frame)
    if isinstance(node.op, ast.Not):
        known = truth(value)
        if isinstance(value, Recurring):
            return Recurring(not value.then)
        return graphless_value("condition") if known is None else Const(not known)
    if isinstance(value, Const):
        try:
            return Const(-value.value if isinstance(node.op, ast.USub) else value.value)
        except TypeError:
            return Unknown()
    if isinstance(value, Unknown) and value.graphless and value.node is None:
        return graphless_value("value", value)
    if isinstance(value, (Tensor, Unknown)) and isinstance(node.op, ast.USub):
        return simple(run, "neg", [(value, node.operand)], node)
    return value if isinstance(value, Tensor) else Unknown()


@expression(ast.BoolOp)
def _boolean(run: Run, node: ast.BoolOp, frame: Frame) -> Value:
    is_or = isinstance(node.op, ast.Or)
    value: Value = NONE
    for number, part in enumerate(node.values):
        value = run.evaluate(part, frame)
        known = truth(value)
        if known is None:
            if is_or:
                later = (run.evaluate(one, frame) for one in node.values[number + 1 :] if _only_compares(one))
                return next((one for one in later if isinstance(one, Recurring)), value)
            continue
        if known is is_or:
            return value
    return value if truth(value) is not None else graphless_value("condition")


def _only_compares(node: ast.expr) -> bool:
    """Whether evaluating an expression computes numbers from variables, and calls nothing."""
    return all(
        isinstance(
            one, (ast.Compare, ast.BinOp, ast.Name, ast.Constant, ast.operator, ast.cmpop, ast.expr_context)
        )
        for one in ast.walk(node)
    )


@expression(ast.Tuple, ast.List, ast.Set)
def _sequence(run: Run, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Value:
    items: list[Value] = []
    spread: list[Value] = []
    unknown = False
    for element in node.elts:
        if isinstance(element, ast.Starred):
            spread.append(run.evaluate(element.value, frame))
            inner, _ = dispatch.iterate(run, spread[-1], element)
            unknown = unknown or inner is None
            items += inner or []
        else:
            items.append(run.evaluate(element, frame))
    run.charge(len(items) >> 4)
    wholes = wholes_of(Sequence("list", spread)) if spread and len(spread) == len(node.elts) else None
    if wholes is not None:
        together = ParameterIterable(leaves_of(Sequence("list", spread))[0])
        together.whole_networks = wholes
        return together
    return Sequence(node.__class__.__name__.lower(), items, unknown, run.symbolic)


@expression(ast.Dict)
def _dict(run: Run, node: ast.Dict, frame: Frame) -> Value:
    items: dict[Any, Value] = {}
    unknown = False
    for key, value in zip(node.keys, node.values):
        held = run.evaluate(value, frame)
        if key is None:
            if isinstance(held, Mapping):
                run.charge(len(held.items) >> 4)
                items.update(held.items)
                unknown = unknown or held.open
            else:
                unknown = True
            continue
        name = run.evaluate(key, frame)
        if isinstance(name, Const) and isinstance(name.value, (str, int, float, bool, bytes, type(None))):
            items[name.value] = held
        else:
            unknown = True
    return Mapping(items, unknown)


@expression(ast.Subscript)
def _subscript(run: Run, node: ast.Subscript, frame: Frame) -> Value:
    value = run.evaluate(node.value, frame)
    if isinstance(node.slice, ast.Slice):
        return slice_of(run, value, node, frame)
    if isinstance(node.slice, ast.Tuple) and any(map(_of_axes, node.slice.elts)):
        value = as_tensor(value)
    if isinstance(value, Tensor) and isinstance(node.slice, ast.Tuple) and all(map(_basic, node.slice.elts)):
        # Slices, integers, None and the ellipsis, in any number, make a view.
        return dispatch.item(run, value, Const(0), node.value, node)
    chosen = chosen_by_name(run, node, value, node.slice, frame)
    if chosen is not None:
        return chosen
    index = run.evaluate(node.slice, frame)
    return dispatch.item(run, keyed(run, value, index, frame), index, node.value, node)


def _of_axes(index: ast.expr) -> bool:
    """Whether a part of an index speaks of axes: only tensors take a tuple that holds one of these."""
    return isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value is ...)


def _basic(index: ast.expr) -> bool:
    if isinstance(index, ast.UnaryOp):
        index = index.operand
    return isinstance(index, ast.Slice) or (
        isinstance(index, ast.Constant) and not isinstance(index.value, str)
    )


@expression(ast.Await)
def _await(run: Run, node: ast.Await, frame: Frame) -> Value:
    return run.evaluate(node.value, frame)


@expression(ast.JoinedStr)
def _formatted(run: Run, node: ast.JoinedStr, frame: Frame) -> Value:
    parts: list[Value] = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(Const(str(value.value)))
            continue
        assert isinstance(value, ast.FormattedValue)
        parts.append(_part(run, value, frame))
    known = [part.value for part in map(script_options.given, parts) if isinstance(part, Const)]
    if len(known) < len(parts) or sum(map(len, known)) > LONGEST:
        return graphless_value("text")
    return script_options.text(Const("".join(known)), parts)


CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("r"): repr, ord("s"): str, ord("a"): ascii}


def _part(run: Run, node: ast.FormattedValue, frame: Frame) -> Value:
    """The text of ``{value!r:>4}`` in an f-string."""
    option = run.evaluate(node.value, frame)
    held = script_options.given(option)
    how = run.evaluate(node.format_spec, frame) if node.format_spec is not None else Const("")
    if not isinstance(held, Const) or isinstance(held, GrowingLength) or not isinstance(how, Const):
        return graphless_value("text")
    value = CONVERSIONS[node.conversion](held.value) if node.conversion in CONVERSIONS else held.value
    return script_options.text(spelled(f":{how.value}", lambda: format(value, how.value)), [option])
