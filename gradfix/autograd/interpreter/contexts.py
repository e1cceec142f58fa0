"""``with``, ``try`` and generators."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable

from gradfix.autograd.arguments import Argument, Call
from gradfix.autograd.interpreter.assignments import assign
from gradfix.autograd.run import (
    STOP,
    Break,
    Continue,
    ControlFlow,
    Exited,
    Run,
    Stop,
    Stopped,
    Uncaught,
    expression,
    statement,
)
from gradfix.autograd.semantics.functions import call_function
from gradfix.autograd.semantics.iteration import GeneratorLoop
from gradfix.autograd.semantics.libraries import FAMILIAR
from gradfix.autograd.values import (
    NONE,
    Frame,
    Function,
    GradMode,
    ImportedName,
    Instance,
    Module,
    Optimizer,
    PendingGenerator,
    ScaledLossContext,
    Unknown,
    Value,
)
from gradfix.core.syntax import walk


@statement(ast.With, ast.AsyncWith)
def _with(run: Run, node: ast.With | ast.AsyncWith, frame: Frame) -> ControlFlow:
    enabled = run.grad_enabled
    flow = _enter(run, node, 0, frame)
    run.grad_enabled = enabled
    return flow


def _enter(run: Run, node: ast.With | ast.AsyncWith, position: int, frame: Frame) -> ControlFlow:
    """Run the body of a ``with`` within its contexts from ``position`` on."""
    if position == len(node.items):
        return run.execute_block(node.body, frame)
    entry = node.items[position]
    context = run.evaluate(entry.context_expr, frame)

    def inside(held: Value) -> ControlFlow:
        if entry.optional_vars is not None:
            assign(run, entry.optional_vars, held, frame, None)
        return _enter(run, node, position + 1, frame)

    if isinstance(context, PendingGenerator):
        return _resume(run, context, inside)
    if isinstance(context, Instance):
        return _within_instance(run, context, node, inside)
    if isinstance(context, GradMode):
        run.grad_enabled = context.enabled
    if isinstance(context, ScaledLossContext):
        return inside(context.loss)
    catches = _suppresses(entry.context_expr)
    veils = isinstance(context, Unknown) and not _of_a_library(run, entry.context_expr, frame)
    run.catching += catches
    run.unknown_contexts += veils
    flow = inside(context if isinstance(context, (Module, Optimizer)) else Unknown("context"))
    run.catching -= catches
    run.unknown_contexts -= veils
    return flow


def _of_a_library(run: Run, context: ast.expr, frame: Frame) -> bool:
    """Whether a context is of a library of which the model knows whether graphs are recorded in it."""
    root = context
    while isinstance(root, (ast.Call, ast.Attribute)):
        root = root.func if isinstance(root, ast.Call) else root.value
    held = run.evaluate(root, frame) if isinstance(root, ast.Name) else None
    return isinstance(held, ImportedName) and held.name.split(".", 1)[0] in FAMILIAR


def _resume(run: Run, context: PendingGenerator, inside: Callable[[Value], ControlFlow]) -> ControlFlow:
    """Run a ``contextmanager`` of the project, and what is inside of it where it yields."""
    left: list[ControlFlow] = []
    stack, statement, call = run.stack, run.statement, run.current_call

    def body(held: Value) -> None:
        within = run.stack
        run.stack = stack
        left.append(inside(held))
        run.stack = within

    run.yielding[context.frame] = body
    try:
        run.execute_block(context.node.body, context.frame)
    finally:
        del run.yielding[context.frame]
        run.stack, run.statement, run.current_call = stack, statement, call
    return left[0] if left else None


class _Closed(Exception):
    """The loop over a generator is left: what it would do after that is not done."""


def drive(run: Run, made: GeneratorLoop, node: ast.For | ast.AsyncFor, frame: Frame) -> ControlFlow:
    """Run a generator of the project that differentiates, and an iteration of the loop over it where it
    yields."""
    left: list[ControlFlow] = []
    iterations = itertools.count()
    path, catching, enabled = run.loops, run.catching, run.grad_enabled

    def body(item: Value) -> None:
        within, run.loops = run.loops, (*path, (node, next(iterations)))
        assign(run, node.target, made.item(item), frame, None)
        flow = run.execute_block(node.body, frame)
        run.loops = within
        if flow is not None and not isinstance(flow, Continue):
            left.append(flow)
            raise _Closed

    try:
        exhaust(run, made.call, body)
    except _Closed:
        run.loops, run.catching, run.grad_enabled = path, catching, enabled
        return None if isinstance(left[0], Break) else left[0]
    return run.execute_block(node.orelse, frame)


def exhaust(run: Run, call: PendingGenerator, item: Callable[[Value], None] = lambda value: None) -> None:
    """Run a generator of the project to its end.

    Args:
        item: What somebody does with each value that it yields, before it goes on.

    Raises:
        Stopped: It raises.
    """
    if run.depth >= run.max_depth:
        return
    run.entered.add(call.node)
    outside = run.stack, run.statement, run.current_call, run.depth

    def body(value: Value) -> None:
        within = run.stack, run.statement, run.current_call, run.depth
        run.stack, run.statement, run.current_call, run.depth = outside
        item(value)
        run.stack, run.statement, run.current_call, run.depth = within

    run.yielding[call.frame] = body
    run.depth += 1
    try:
        if isinstance(run.execute_block(call.node.body, call.frame), Stop):
            raise Stopped
    finally:
        del run.yielding[call.frame]
        run.stack, run.statement, run.current_call, run.depth = outside


def _within_instance(
    run: Run, context: Instance, node: ast.With | ast.AsyncWith, inside: Callable[[Value], ControlFlow]
) -> ControlFlow:
    """Run ``__enter__`` and ``__exit__`` of a class of the project, where it has them."""
    names = ("__aenter__", "__aexit__") if isinstance(node, ast.AsyncWith) else ("__enter__", "__exit__")
    enter, leave = (context.cls.lookup(name) for name in names)
    held: Value = context
    if isinstance(enter, Function):
        held = call_function(run, enter.bind(context), Call([], {}, node))
    flow = inside(held)
    if isinstance(leave, Function):
        nothing: list[Argument] = [(NONE, ast.copy_location(ast.Constant(None), node))] * 3
        call_function(run, leave.bind(context), Call(nothing, {}, node))
    return flow


def _suppresses(context: ast.expr) -> bool:
    """Whether this is ``suppress(RuntimeError)`` or the like."""
    if not isinstance(context, ast.Call):
        return False
    name = getattr(context.func, "attr", None) or getattr(context.func, "id", None)
    return name == "suppress" and any(_is_runtime_error(kind) for kind in context.args)


@statement(ast.Try)
def _try(run: Run, node: ast.Try, frame: Frame) -> ControlFlow:
    catching, enabled, call, veiled = run.catching, run.grad_enabled, run.current_call, run.unknown_contexts
    handlers = run.handlers
    run.handlers += bool(node.handlers)
    run.catching += any(_catches_runtime_error(h) for h in node.handlers)
    try:
        flow = run.execute_block(node.body, frame)
    except (Exited, Uncaught):
        raise
    except Stopped:  # raised in a function that was called
        if not node.handlers:
            raise
        flow = STOP
        run.grad_enabled, run.current_call, run.unknown_contexts = enabled, call, veiled
    run.catching, run.handlers = catching, handlers
    if isinstance(flow, Stop) and node.handlers:
        flow = run.execute_block(node.handlers[0].body, frame)
    elif flow is None:
        flow = run.execute_block(node.orelse, frame)
    final = run.execute_block(node.finalbody, frame)
    return final if final is not None else flow


ERRORS = (
    "Trying to backward through the graph a second time",
    "one of the variables needed for gradient computation has been modified by an inplace operation",
)
"""Autograd's errors, as their texts begin (E1, E2)."""


def _catches_runtime_error(handler: ast.ExceptHandler) -> bool:
    """Whether autograd's errors end in this handler: those that it does not look for may be raised again."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not any(kind is None or _is_runtime_error(kind) for kind in kinds):
        return False
    inside = list(walk(handler))
    return not any(isinstance(part, ast.Raise) for part in inside) or any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and any(part.value in error for error in ERRORS)
        for part in inside
    )


def _is_runtime_error(kind: ast.expr) -> bool:
    return isinstance(kind, ast.Name) and kind.id in ("RuntimeError", "Exception", "BaseException")


@expression(ast.Yield, ast.YieldFrom)
def _yield(run: Run, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
    value = run.evaluate(node.value, frame) if node.value is not None else NONE
    resume = run.yielding.get(frame)
    if resume is not None:
        resume(value)
    return Unknown("sent")
