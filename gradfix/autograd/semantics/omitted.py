"""Parameters that callers may leave out: what is used with no question whether it is there was passed."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradfix.autograd.arguments import Call
from gradfix.autograd.run import Run
from gradfix.autograd.semantics import dispatch
from gradfix.autograd.semantics.dispatch import attributes_of, before_methods, called, items_of, iterated
from gradfix.autograd.values import Omitted, Value


@called(Omitted)
def _call(run: Run, value: Omitted, call: Call) -> Value:
    return dispatch.call_value(run, value.given, call)


@before_methods(Omitted)
def _method(run: Run, value: Omitted, call: Call) -> Value:
    return dispatch.call_method(run, value.given, call)


@attributes_of(Omitted)
def _attribute(run: Run, value: Omitted, name: str, node: ast.AST) -> Value:
    return dispatch.attribute(run, value.given, name, node)


@items_of(Omitted)
def _item(run: Run, value: Omitted, index: Value, expression: ast.expr, site: ast.AST | None) -> Value:
    return dispatch.item(run, value.given, index, expression, site)


@iterated(Omitted)
def _iterate(
    run: Run, value: Omitted, site: ast.expr | None
) -> tuple[list[Value] | None, Callable[[int], Value]]:
    return dispatch.iterate(run, value.given, site)
