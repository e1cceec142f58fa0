"""The last micro-batches of an epoch get no step, and their gradients go into the first step of the next one.
That step uses more gradients than it should, some of them computed with older weights.

    for epoch in range(epochs):                       for epoch in range(epochs):
        for i, (x, y) in enumerate(batches):              for i, (x, y) in enumerate(batches):
            (loss_of(x, y) / 4).backward()      =>            (loss_of(x, y) / 4).backward()
            if (i + 1) % 4 == 0:                              if (i + 1) % 4 == 0 or i + 1 == len(batches):
                optimizer.step()                                  optimizer.step()
                optimizer.zero_grad()                             optimizer.zero_grad()

This happens where the number of batches is not a multiple of the number of iterations per step. The last
gradients of the last epoch are never used.

When not to fix it: where the number of batches is always such a multiple.

Preconditions:

* the step waits for a fixed number of iterations, counted from the start of the loop on, and this is the
  only place where its optimizer steps;
* nothing clears its gradients in the loop around, outside of that loop, nor in an iteration ahead of its
  backward: where each window begins by that, so does the first one of an epoch;
* that loop goes through something again and again. If the number of its iterations is written there, it
  leaves a rest.

The condition takes in the last iteration where the loop enumerates what has a length, by its name.

By hand: step once more after the loop, or clear the gradients before the next one.

Effect: changes.

Severity: warning where a rest is known to be left, else info: it may be that none is.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.autograd.graph import ZeroGrad
from gradfix.autograd.program import EntryPoint, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, gradient_clears, steps
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceExpression, Severity
from gradfix.core.span import Span
from gradfix.rules.edits import line, note, stepped, within_file
from gradfix.rules.intent.accumulation import DelayedStep, counts_from_start, delayed_steps

LOOPS = (ast.For, ast.While)


def find(program: Program) -> Iterator[Finding]:
    """Report each loop whose last gradients wait for the next one."""
    reported: set[ast.AST] = set()
    for entry in program.entry_points:
        for one in delayed_steps(program, entry.run_without_options):
            if one.step.site in reported or not _leaks(entry, one):
                continue
            rest = _rest(one)
            if rest is not False:
                reported.add(one.step.site)
                yield _finding(program, one, rest)


def _leaks(entry: EntryPoint, one: DelayedStep) -> bool:
    """Whether what is left of a loop is still there in the next one."""
    if len(one.step.loops) < 2 or not isinstance(one.step.loops[-2][0], LOOPS):
        return False
    optimizer = one.step.optimizer
    owned = set(optimizer.owned())
    for run in entry.runs:
        mine = [s for s in steps(run) if s.optimizer.created is optimizer.created]
        if any(s.site is not one.step.site for s in mine) or run.external_optimizers or run.grad_reads:
            return False
        for zero in gradient_clears(run):
            within = any(loop is one.loop for loop, _ in zero.loops)
            if (zero.loops and not within) or (within and _begins_clean(run, one, zero)):
                return False
    return bool(owned) and optimizer.loops == () and not optimizer.escaped


def _begins_clean(run: Run, one: DelayedStep, zero: ZeroGrad) -> bool:
    """Whether gradients are cleared in an iteration ahead of its backward, as where each window begins."""
    same = (b for b in backwards(run) if b.site is one.backward.site)
    return any(zero.serial < b.serial and b.loops[: len(zero.loops)] == zero.loops for b in same)


def _rest(one: DelayedStep) -> bool | None:
    """Whether a loop leaves a rest; None if that is not known."""
    over = counts_from_start(one.loop)
    iterations = getattr(over, "value", None)
    window = getattr(one.window, "value", None)
    if over is None or window == 1:
        return False
    if isinstance(iterations, int) and isinstance(window, int) and window > 0:
        return iterations % window != 0
    return None


def _finding(program: Program, one: DelayedStep, rest: bool | None) -> Finding:
    name, iterations = stepped(program, one.step.optimizer) or "the optimizer", program.segment(one.window)
    when = "" if rest else f", unless the loop has a multiple of `{iterations}` iterations"
    return Finding(
        "ragged-accumulation",
        f"`{name}` does not step after the last iterations{when}: their gradients go into the next epoch",
        Span.of(one.test),
        (
            note(one.backward.site, "every iteration adds its gradients"),
            note(one.step.site, f"this step runs once every `{iterations}` iterations"),
        ),
        within_file(_fixes(program, one)),
        severity=Severity.WARNING if rest else Severity.INFO,
    )


def _fixes(program: Program, one: DelayedStep) -> Iterator[Fix]:
    """The condition, with the last iteration taken in."""
    over = counts_from_start(one.loop)
    rest = one.test.left if isinstance(one.test, ast.Compare) else None
    if line(one.test) <= 0 or not isinstance(rest, ast.BinOp):
        return
    left = rest.left
    counted = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add) and ast.unparse(left.right) == "1"
    if not counted or not isinstance(over, (ast.Name, ast.Attribute, ast.Constant)):
        return
    end = program.segment(over)
    if not isinstance(over, ast.Constant) and _called_range(one.loop) is False:
        end = f"len({end})"
    code = f"{program.segment(one.test)} or {one.number} + 1 == {end}"
    edit = ReplaceExpression(Span.of(one.test), code)
    claim = Claim(unchanged=(), same_forwards=False)
    yield Fix("step in the last iteration as well", Effect.CHANGES, (edit,), claim)


def _called_range(loop: ast.For) -> bool:
    """Whether a loop goes over numbers up to one."""
    return any(isinstance(node, ast.Name) and node.id in ("range", "trange") for node in ast.walk(loop.iter))
