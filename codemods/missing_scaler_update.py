"""A loop steps through a `GradScaler` that is never updated.
If it is enabled, the second step raises "step() has already been called since the last update()".

    for x, y in loader:                            for x, y in loader:
        optimizer.zero_grad()                          optimizer.zero_grad()
        loss = loss_fn(model(x), y)                    loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()         =>       scaler.scale(loss).backward()
        scaler.step(optimizer)                         scaler.step(optimizer)
                                                       scaler.update()

`update` fits the scale to what the step has found, and lets the next iteration unscale and step again. Where
the scaler is disabled (no GPU, `enabled=False`), nothing is noticed.

When not to fix it: where the scaler is always disabled.

Preconditions:

* the scaler is made here, or is used as one: it scales the loss that is backpropagated, and steps;
* it steps the same optimizer twice with no `update()` of it in between, whichever way conditions go;
* no function that the model cannot see is handed the scaler in between.

The call is inserted after the last step of the iteration that is made through the scaler, if nothing updates
it anywhere; where something does, but too rarely, nothing is rewritten.

By hand: call `scaler.update()` once in every iteration, after the last `scaler.step`.

Effect: repairs.

Severity: error.
Clause: used as it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import ScalerUpdate, Step
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import of_kind, steps
from gradfix.autograd.values import Scaler
from gradfix.core.codemod import Claim, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.rules.edits import insert, note, shown, within_file

RAISED = "step() has already been called since the last update()"


@dataclass(eq=False)
class Outdated:
    """A scaler that steps a second time with the scale of the first."""

    first: Step
    again: Step
    last: Step
    """The last step of the iteration that is made through it."""
    never: bool
    """Whether nothing ever updates it."""


def find(program: Program) -> Iterator[Finding]:
    """Report each scaler that steps again and again without an update."""
    for one in program.certain_observations(
        not_updated, lambda o: o.first.site, raises=False, repeated=_scales
    ):
        yield _finding(program, one)


def _scales(run: Run) -> bool:
    return any(step.scaler is not None for step in steps(run))


def not_updated(run: Run) -> dict[Hashable, Outdated]:
    """Steps through a scaler after which it steps the same optimizer again, with no update in between."""
    found: dict[Hashable, Outdated] = {}
    updates: dict[object, list[ScalerUpdate]] = {}
    for update in of_kind(run, ScalerUpdate):
        updates.setdefault(update.scaler, []).append(update)
    scaling = [s for s in steps(run) if s.scaler is not None and _is_scaler(run, s)]
    reported: set[object] = set()
    for index, step in enumerate(scaling):
        again = next((s for s in scaling[index + 1 :] if _same(s, step)), None)
        if again is None or step.scaler in reported:
            continue
        mine = updates.get(step.scaler, [])
        if not any(step.serial < u.serial < again.serial for u in mine):
            reported.add(step.scaler)
            together = [s for s in scaling if s.scaler is step.scaler and s.loops == step.loops]
            found.setdefault(step.site, Outdated(step, again, together[-1], not mine))
    return found


def _is_scaler(run: Run, step: Step) -> bool:
    """Whether what steps an optimizer is a scaler that may be switched on."""
    if isinstance(step.scaler, Scaler):
        return step.scaler.enabled is not False
    return step.scaler in run.scaled.values()


def _same(one: Step, other: Step) -> bool:
    return one.scaler is other.scaler and one.optimizer is other.optimizer


def _finding(program: Program, one: Outdated) -> Finding:
    site = one.first.site
    assert isinstance(site, (ast.expr, ast.stmt))
    called = isinstance(site, ast.Call) and isinstance(site.func, ast.Attribute)
    name = shown(program, site.func.value) if called else "the scaler"  # type: ignore[union-attr]
    where = "" if one.again.site is site else " of this iteration"
    notes = [note(site, f"the scaler's first step{where}")]
    if one.again.site is not site:
        notes.append(note(one.again.site, "and its second, of the same optimizer"))
    message = f"`{name}` steps again without `{name}.update()`: it raises, or its scale never changes"
    return Finding("missing-scaler-update", message, Span.of(site), tuple(notes), _fixes(program, one, name))


def _fixes(program: Program, one: Outdated, name: str) -> tuple[Fix, ...]:
    if not one.never or one.again.site is not one.first.site:
        return ()
    try:
        first, last = program.statement(one.first.site), program.statement(one.last.site)
    except Elsewhere:
        return ()
    if last not in program.suite_around(first) or name == "the scaler":
        return ()
    edit = insert(last, "after", f"{name}.update()")
    return within_file(
        [Fix("call `update()` in every iteration", Effect.REPAIRS, (edit,), Claim(stops=RAISED))]
    )
