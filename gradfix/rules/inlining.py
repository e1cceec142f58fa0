"""Inline the call of a helper, for an edit in it that must not affect its other callers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gradfix.autograd.program import Program
from gradfix.rules.edits import names_bound, names_read, with_parts

SIMPLE = (ast.Name, ast.Attribute, ast.Constant)
"""What may be evaluated as often as one likes."""


def written_out(
    program: Program, call: ast.Call, changed: ast.expr, change: Callable[[str], str | None]
) -> str | None:
    """What a call of a helper computes, written where it is called, with one expression in it changed.

    None where the helper does more than return an expression on one line, or where that would mean something
    else at the call.
    """
    helper = program.function(changed)
    if not isinstance(helper, ast.FunctionDef) or helper.decorator_list:
        return None
    result = _returned(helper)
    given = _given(program, helper, call)
    if result is None or given is None or not _same_names(program, helper, result, given, call):
        return None
    if not _same_order(result, given):
        return None
    return _text(program, result, given, changed, change)


def _returned(helper: ast.FunctionDef) -> ast.expr | None:
    """The expression that a helper returns, if it does nothing else and binds nothing in it."""
    first = 1 if ast.get_docstring(helper) is not None else 0
    if len(helper.body) != first + 1 or not isinstance(helper.body[-1], ast.Return):
        return None
    result = helper.body[-1].value
    if result is None or result.lineno != result.end_lineno or names_bound(result):
        return None
    if any(isinstance(n, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(result)):
        return None
    return result


def _given(program: Program, helper: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """What each parameter is given."""
    parameters = helper.args
    if parameters.vararg or parameters.kwarg or parameters.kwonlyargs or parameters.posonlyargs:
        return None
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    names = [argument.arg for argument in parameters.args]
    arguments = list(call.args)
    if isinstance(program.parent(helper), ast.ClassDef):
        if not isinstance(call.func, ast.Attribute):
            return None
        arguments.insert(0, call.func.value)
    given = dict(zip(reversed(names), reversed(parameters.defaults)))
    if len(arguments) > len(names) or any(keyword.arg not in names for keyword in call.keywords):
        return None
    given |= dict(zip(names, arguments))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    return given if given.keys() == set(names) else None


def _same_names(
    program: Program,
    helper: ast.FunctionDef,
    result: ast.expr,
    given: Mapping[str, ast.expr],
    call: ast.Call,
) -> bool:
    """Whether what a helper finds around it has the same names where it is called."""
    outer = program.parent(helper)
    while isinstance(outer, ast.ClassDef):
        outer = program.parent(outer)
    caller = program.function(call)
    if outer is caller:
        return True
    local = names_bound(caller) | {n.arg for n in ast.walk(caller) if isinstance(n, ast.arg)}
    free = names_read(result) - given.keys()
    return outer is program.tree and free.isdisjoint(local)


def _same_order(result: ast.expr, given: Mapping[str, ast.expr]) -> bool:
    """Whether the arguments are evaluated once, and before the helper calls anything.

    Two that are computed could change places: at most one may be.
    """
    computed = [name for name, argument in given.items() if not isinstance(argument, SIMPLE)]
    uses = [n for n in ast.walk(result) if isinstance(n, ast.Name) and n.id in computed]
    if len(computed) > 1 or len(uses) != len(computed):
        return False
    calls = [n for n in ast.walk(result) if isinstance(n, ast.Call)]
    return not any(c.end_col_offset <= n.col_offset for c in calls for n in uses)  # type: ignore[operator]


def _text(
    program: Program,
    result: ast.expr,
    given: Mapping[str, ast.expr],
    changed: ast.expr,
    change: Callable[[str], str | None],
) -> str | None:
    """The text of what is returned, with what the parameters are given, and one expression changed."""
    uses = [n for n in ast.walk(result) if isinstance(n, ast.Name) and n.id in given]

    parts: dict[ast.expr, str] = {use: _argument(program, use, given[use.id]) for use in uses}
    inner = change(with_parts(program, changed, parts))
    if inner is None or changed is result:
        return inner
    outside = {use: code for use, code in parts.items() if not _within(use, changed)}
    return with_parts(program, result, {**outside, changed: inner})


def _argument(program: Program, use: ast.Name, argument: ast.expr) -> str:
    """The text of an argument in the place of a parameter."""
    text = program.segment(argument)
    alone = isinstance(program.parent(use), ast.Call) or isinstance(argument, (*SIMPLE, ast.Call))
    return text if alone else f"({text})"


def _within(inner: ast.expr, outer: ast.expr) -> bool:
    return any(node is inner for node in ast.walk(outer))
