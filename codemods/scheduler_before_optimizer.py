"""A learning rate scheduler steps before the optimizer has made its first step.
The first learning rate is never used, and every later change comes one iteration early.

    for epoch in range(epochs):            for epoch in range(epochs):
        scheduler.step()                       for x, y in loader:
        for x, y in loader:           =>           ...
            ...                                    optimizer.step()
            optimizer.step()                   scheduler.step()

Creating a scheduler sets the first learning rate. Stepped before any step of the optimizer, it goes on to
the second at once (a decay after 29 epochs instead of 30). Before torch 1.1 this was the order to write;
since then torch warns of it: "Detected call of `lr_scheduler.step()` before `optimizer.step()`".

When not to fix it: where a schedule was tuned in this order.

Preconditions:

* the schedule is made here, for an optimizer that can be seen, and with its first value (`last_epoch` is not
  given); nobody tells it which value to take, as `step(epoch)` and `step(validation_loss)` do;
* the optimizer has not stepped before, by any way that conditions go, and no unknown code has been given it;
* nothing else moves the schedule, and it is moved once in an iteration;
* the optimizer steps later in the same iteration: in the same block, or in a loop, a `with` or a call that
  stands there. A schedule that a condition lets begin later (`if epoch > 0:`) is none of these.

The statement moves after the last statement of the block in which the optimizer steps. Where a condition
decides whether it does (accumulation), nothing is rewritten.

By hand: call `scheduler.step()` after the optimizer's step, or at the end of the epoch.

Effect: changes.

Severity: warning. One learning rate of the schedule is left out, and torch itself warns of it.
Clause: used as it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import LoopContext, SchedulerStep, Step
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import of_kind, steps
from gradfix.core.codemod import Claim, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.rules.edits import constructed, move, note, shown, stepped, within_file


@dataclass(eq=False)
class Early:
    """The first value of a schedule that is passed over."""

    run: Run
    advance: SchedulerStep
    steps: list[Step]
    """The steps of the optimizer in the same iteration, which all come later."""


def find(program: Program) -> Iterator[Finding]:
    """Report each schedule that moves on before its optimizer has stepped."""
    for early in program.certain_observations(
        too_early, lambda e: e.advance.site, raises=False, besides=_idle
    ):
        found = _finding(program, early)
        if found is not None:
            yield found


def too_early(run: Run) -> dict[Hashable, Early]:
    """Schedules whose first move comes before the first step of their optimizer, and in the same
    iteration."""
    found: dict[Hashable, Early] = {}
    moves: dict[object, list[SchedulerStep]] = {}
    for advance in of_kind(run, SchedulerStep):
        moves.setdefault(advance.schedule, []).append(advance)
    for advances in moves.values():
        first, optimizer = advances[0], advances[0].optimizer
        like = [o.state for o in run.optimizers if o.state.original is optimizer.original]
        if any(o.escaped for o in like) or any(s.serial < first.serial for o in like for s in o.steps):
            continue
        mine = [s for s in steps(run) if s.optimizer is optimizer]
        loops = _training(first, mine)
        together = [a for a in advances if a.loops[: len(loops)] == loops]
        later = [s for s in mine if s.loops[: len(loops)] == loops]
        # What moves a schedule several times in a row goes on with earlier training.
        if len(together) == 1 and (loops or any(not s.loops for s in later)):
            found.setdefault(first.site, Early(run, first, later))
    return found


def _training(advance: SchedulerStep, taken: list[Step]) -> LoopContext:
    """The iteration that a move belongs to: of the loops in which the optimizer steps, none of its own."""
    loops = advance.loops
    while loops and not any(loop is loops[-1][0] for step in taken for loop, _ in step.loops):
        loops = loops[:-1]
    return loops


def _idle(run: Run) -> set[ast.AST]:
    """Moves of which a run says nothing, for it leaves the steps of the optimizer out."""
    busy = {step.optimizer for step in steps(run)}
    return {advance.site for advance in of_kind(run, SchedulerStep) if advance.optimizer not in busy}


def _finding(program: Program, early: Early) -> Finding | None:
    """The finding, if both stand in one block; otherwise a condition may hold the schedule back at first."""
    try:
        statement = _unit(program, early.advance)
        place = _behind(program, statement, early.steps)
    except Elsewhere:
        return None
    if place is None:
        return None
    last, certain = place
    site, step = early.advance.site, early.steps[0]
    assert isinstance(site, ast.Call)
    name = stepped(program, step.optimizer) or "the optimizer"
    notes = (
        note(site, "this moves on to the second learning rate"),
        note(step.site, "the first step uses the second learning rate"),
    )
    edit = move(statement, last, "after")
    claim = Claim(unchanged=(), schedules=constructed(early.run, step.optimizer))
    fix = Fix("call it after the optimizer's step", Effect.CHANGES, (edit,), claim)
    return Finding(
        "scheduler-before-optimizer",
        f"`{shown(program, site)}` comes before `{name}.step()`: the first learning rate is never used",
        Span.of(site),
        notes,
        within_file([fix]) if certain else (),
    )


def _unit(program: Program, advance: SchedulerStep) -> ast.stmt:
    """The statement that moves a schedule on, with what holds it alone: ``for s in schedulers: s.step()``."""
    statement = program.statement(advance.site)
    while True:
        outer = program.parent(statement)
        if not isinstance(outer, (ast.For, ast.If)) or outer.body != [statement] or outer.orelse:
            return statement
        if isinstance(outer, ast.If) and not _given(outer.test):
            return statement
        statement = outer


def _given(test: ast.expr) -> bool:
    """Whether a condition asks whether there is a schedule at all: ``if scheduler is not None``."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        return isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
    return isinstance(test, (ast.Name, ast.Attribute)) and "sched" in ast.unparse(test).lower()


def _behind(program: Program, statement: ast.stmt, taken: list[Step]) -> tuple[ast.stmt, bool] | None:
    """The last statement of a block that leads to a step, and whether no condition decides about that."""
    block = program.suite_around(statement)
    start = block.index(statement)
    last, certain = start, True
    for step in taken:
        for place in (*step.calls, step.site):
            if getattr(place, "lineno", 0) <= 0:
                continue
            above = [place, *program.ancestors(place)]
            here = next((block.index(a) for a in above if a in block), start)
            if here > start:
                last = max(last, here)
                certain &= not any(
                    isinstance(a, (ast.If, ast.Try)) for a in above[: above.index(block[here]) + 1]
                )
                break
    return (block[last], certain) if last > start else None
