"""Steps that wait for several iterations of a loop, told by the number of the iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, between, steps
from gradfix.core.syntax import last_name
from gradfix.rules import conditional_steps


class DelayedStep(NamedTuple):
    """A backward of every iteration, and the step that waits for some of them."""

    run: Run
    backward: Backward
    step: Step
    loop: ast.For
    test: ast.expr
    """The condition that holds in the iterations that step."""
    window: ast.expr
    """For how many iterations it waits."""
    number: str
    """The variable that counts the iterations, from the start of each loop on."""


def delayed_steps(program: Program, run: Run) -> Iterator[DelayedStep]:
    """The steps of a run that wait for a fixed number of iterations of the loop around them."""
    for step in {s.site: s for s in reversed(steps(run))}.values():
        if step.doubtful or not step.loops or step.optimizer.wrapped or not step.optimizer.groups_known:
            continue
        loop = step.loops[-1][0]
        earlier = [
            b for b in backwards(run) if b.accumulates and b.loops == step.loops and b.serial < step.serial
        ]
        if not isinstance(loop, ast.For) or not earlier or getattr(step.site, "lineno", 0) <= 0:
            continue
        backward = earlier[-1]
        if next(between(steps(run), backward.serial, step.serial), None) is not None:
            continue
        if len({b.site for b in earlier}) > 1 or getattr(backward.site, "lineno", 0) <= 0:
            continue
        if not isinstance(conditional_steps.clearing_statement(program, backward, step), ast.stmt):
            continue
        outer = [a for a in program.ancestors(step.site) if isinstance(a, (ast.If, ast.For))]
        held = outer[0] if outer and isinstance(outer[0], ast.If) else None
        if held is None or outer[1:2] != [loop] or held.orelse:
            continue
        window, number = _window(held.test, loop)
        if window is not None and number is not None:
            yield DelayedStep(run, backward, step, loop, held.test, window, number)


def _window(test: ast.expr, loop: ast.For) -> tuple[ast.expr | None, str | None]:
    """What ``(i + 1) % n == 0`` waits for, and what it counts, if that starts over with the loop."""
    rest = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return None, None
    if not isinstance(rest, ast.BinOp) or not isinstance(rest.op, ast.Mod):
        return None, None
    if not isinstance(test.comparators[0], ast.Constant) or test.comparators[0].value != 0:
        return None, None
    names = [n.id for n in ast.walk(rest.left) if isinstance(n, ast.Name)]
    counted = _counter(loop)
    return (rest.right, counted) if counted is not None and names == [counted] else (None, None)


def counts_from_start(loop: ast.For) -> ast.expr | None:
    """What a loop goes through, where its variable counts from 0."""
    over = loop.iter
    if isinstance(over, ast.Call) and last_name(over) == "tqdm" and over.args:
        over = over.args[0]
    plain = isinstance(over, ast.Call) and len(over.args) == 1 and not over.keywords
    return (
        over.args[0]
        if plain and isinstance(over, ast.Call) and last_name(over) in ("enumerate", "range")
        else None
    )


def _counter(loop: ast.For) -> str | None:
    """The variable of a loop that has the number of the iteration."""
    target, over = loop.target, loop.iter
    if not isinstance(over, ast.Call):
        return None
    if last_name(over) == "tqdm" and over.args and isinstance(over.args[0], ast.Call):
        over = over.args[0]
    if last_name(over) == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    elif last_name(over) not in ("range", "trange") or len(over.args) != 1:
        return None
    return target.id if isinstance(target, ast.Name) else None
