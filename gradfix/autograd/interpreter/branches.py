"""``if``, ``match`` and conditional expressions."""

from __future__ import annotations

import ast
from functools import lru_cache

from gradfix.autograd.interpreter.conditions import (
    decide,
    default_for,
    ends_recursion,
    keep_answer,
    was_guessed,
)
from gradfix.autograd.interpreter.narrowing import narrowed
from gradfix.autograd.matching import as_if
from gradfix.autograd.run import ControlFlow, Run, expression, statement
from gradfix.autograd.values import Frame, IterationNumber, NumberCondition, Value
from gradfix.core.syntax import last_name, walk


def _bails_out(body: list[ast.stmt]) -> bool:
    """Whether a suite ends by leaving what it stands in."""
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)) or (
        isinstance(body[-1], ast.Expr)
        and isinstance(body[-1].value, ast.Call)
        and isinstance(body[-1].value.func, (ast.Attribute, ast.Name))
        and (getattr(body[-1].value.func, "attr", None) or getattr(body[-1].value.func, "id", None))
        in ("exit", "quit", "_exit")
    )


def _answers(statement: ast.stmt) -> bool:
    """Whether a statement returns something that was computed."""
    return (
        isinstance(statement, ast.Return)
        and statement.value is not None
        and not isinstance(statement.value, ast.Constant)
    )


@statement(ast.If)
def _if(run: Run, node: ast.If, frame: Frame) -> ControlFlow:
    ends = ends_recursion(run, node.body, node.orelse)
    if ends is not None:
        return _branch(run, node, decide(run, node.test, frame, default_for(run, ends)), frame)
    if _bails_out(node.body) and not node.orelse:
        # Nothing is learned from leaving early: it is taken only where the values say so. What gives another
        # result, as against none, is one of two ways.
        last = node.body[-1]
        site = node if (run.depth and _answers(last)) or _skips_by_number(run, node, frame) else None
        default = node in run.scenario.revised_guesses if site else not run.scenario.main
        # What was guessed before is no reason to end the program, nor, if that was while things were set up,
        # to leave out what comes.
        anew = site is None and not isinstance(last, ast.Raise) and was_guessed(run, node.test, frame)
        open_before = run.left_open
        taken = decide(run, node.test, frame, default, site, not anew and not isinstance(last, ast.Raise))
        if site and not taken and run.left_open > open_before:
            run.guesses.append(node)  # The rest of the function is the other way.
        if run.left_open > open_before and _picks(run, node.test):
            run.selects_some = True
        if anew:
            keep_answer(run, node.test, frame, taken)
    elif isinstance(node.body[-1], ast.Raise) and not isinstance(node.orelse[-1], ast.Raise):
        taken = decide(run, node.test, frame, not run.scenario.main, guess=False)
    else:
        open_before = run.left_open
        usual = not _asks_for_a_failure(node.test)
        taken = decide(run, node.test, frame, usual is (node not in run.scenario.revised_guesses), node)
        if run.left_open > open_before:
            before, some = len(run.guesses), run.selects_some
            run.guesses.append(node)
            run.selects_some = some or _picks(run, node.test)
            try:
                return _branch(run, node, taken, frame)
            finally:
                del run.guesses[before:]
                run.selects_some = some
    return _branch(run, node, taken, frame)


def _branch(run: Run, node: ast.If, taken: bool, frame: Frame) -> ControlFlow:
    with narrowed(run, node.test, taken, frame):
        return run.execute_block(node.body if taken else node.orelse, frame)


NOT_FINITE = frozenset(("isnan", "isinf", "is_nan", "is_inf"))


@lru_cache(maxsize=4096)
def _asks_for_a_failure(test: ast.expr) -> bool:
    """Whether a condition holds only where a number is not finite, which does not happen in normal
    training."""
    if isinstance(test, ast.BoolOp):
        enough = any if isinstance(test.op, ast.And) else all
        return enough(map(_asks_for_a_failure, test.values))
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    asked = test.operand if isinstance(test, ast.UnaryOp) else test
    names = {last_name(n) for n in walk(asked) if isinstance(n, ast.Call)}
    return "isfinite" in names if negated else not names.isdisjoint(NOT_FINITE)


def _picks(run: Run, test: ast.expr) -> bool:
    """Whether a condition picks parameters, as ``if "head" in name`` does in a loop over them."""
    picked = set().union(*run.parameter_variables)
    return bool(picked) and any(isinstance(n, ast.Name) and n.id in picked for n in walk(test))


def _skips_by_number(run: Run, node: ast.If, frame: Frame) -> bool:
    """Whether some iterations skip the rest by their number: ``if i % 5: continue``."""
    test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
    if not isinstance(node.body[-1], ast.Continue) or any(isinstance(n, ast.Call) for n in walk(test)):
        return False
    return isinstance(run.evaluate(test, frame), (IterationNumber, NumberCondition))


@statement(ast.Match)
def _match(run: Run, node: ast.Match, frame: Frame) -> ControlFlow:
    return run.execute_block(as_if(node), frame)


@expression(ast.IfExp)
def _conditional(run: Run, node: ast.IfExp, frame: Frame) -> Value:
    ends = ends_recursion(run, node.body, node.orelse)
    if ends is not None:
        taken = decide(run, node.test, frame, default_for(run, ends))
    else:
        taken = decide(run, node.test, frame, not _asks_for_a_failure(node.test), node)
    with narrowed(run, node.test, taken, frame):
        return run.evaluate(node.body if taken else node.orelse, frame)
