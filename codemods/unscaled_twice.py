"""The gradients of an optimizer are unscaled a second time before the scaler is updated.
Torch raises "unscale_() has already been called on this optimizer since the last update()".

    scaler.scale(loss).backward()                  scaler.scale(loss).backward()
    scaler.unscale_(optimizer)                     scaler.unscale_(optimizer)
    clip_grad_norm_(a.parameters(), 1.0)    =>     clip_grad_norm_(a.parameters(), 1.0)
    scaler.unscale_(optimizer)                     clip_grad_norm_(b.parameters(), 1.0)
    clip_grad_norm_(b.parameters(), 1.0)           scaler.step(optimizer)
    scaler.step(optimizer)                         scaler.update()
    scaler.update()

`unscale_` divides all gradients of the optimizer by the scale, once for each `update`. Where gradients are
accumulated, it belongs in front of the step, behind the backward of the last batch. Where the scaler is off
(no GPU, `enabled=False`), nothing is noticed.

When not to fix it: where the scaler is always disabled.

Preconditions:

* the scaler is made here, and is not switched off;
* both calls are certainly made for the same optimizer, with no `update()` of the scaler in between.

The second call is dropped where it stands in the same iteration as the first and is a statement of its own.

By hand: call `unscale_` once for each optimizer between the last backward and the step.

Effect: repairs.

Severity: error.
Clause: used as it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import ScalerUpdate, Unscale
from gradfix.autograd.program import Elsewhere, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import of_kind, same_iteration
from gradfix.autograd.values import Scaler
from gradfix.core.codemod import Claim, Effect, Finding, Fix, RemoveStatement
from gradfix.core.span import Span
from gradfix.rules.edits import note, shown, within_file

RAISED = "unscale_() has already been called on this optimizer since the last update()"


@dataclass(eq=False)
class Repeated:
    """Two calls of ``unscale_`` for one optimizer with no update in between."""

    first: Unscale
    second: Unscale


def find(program: Program) -> Iterator[Finding]:
    """Report each call that unscales gradients which have been unscaled."""
    for one in program.certain_observations(
        unscaled_again, lambda o: o.second.site, raises=True, repeated=lambda run: bool(of_kind(run, Unscale))
    ):
        yield _finding(program, one)


def unscaled_again(run: Run) -> dict[Hashable, Repeated]:
    """By their places: the calls that come second for their optimizer since the scaler was updated."""
    found: dict[Hashable, Repeated] = {}
    last: dict[Hashable, Unscale] = {}
    for event in run.events:
        if isinstance(event, ScalerUpdate):
            last = {key: one for key, one in last.items() if one.scaler is not event.scaler}
        elif isinstance(event, Unscale) and isinstance(event.scaler, Scaler) and event.scaler.enabled is True:
            first = last.setdefault((event.scaler, event.optimizer), event)
            if first is not event:
                found.setdefault(event.site, Repeated(first, event))
    return found


def _finding(program: Program, one: Repeated) -> Finding:
    site = one.second.site
    assert isinstance(site, ast.Call)
    call = shown(program, site)
    notes = [note(site, f'and again here: it raises "{RAISED}"')]
    if one.first.site is not site:
        notes.insert(0, note(one.first.site, "the gradients are divided by the scale here"))
    message = f"`{call}` is called twice with no `update()` in between: it raises"
    return Finding("unscaled-twice", message, Span.of(site), tuple(notes), within_file(_fixes(program, one)))


def _fixes(program: Program, one: Repeated) -> Iterator[Fix]:
    if one.first.site is one.second.site or not same_iteration(one.first, one.second):
        return
    try:
        first, second = program.statement(one.first.site), program.statement(one.second.site)
    except Elsewhere:
        return
    alone = isinstance(second, ast.Expr) and second.value is one.second.site
    if alone and second in program.suite_around(first):
        edit = RemoveStatement(Span.of(second))
        yield Fix("unscale once", Effect.REPAIRS, (edit,), Claim(stops=RAISED))
