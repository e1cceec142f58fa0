"""A loop steps an optimizer and never clears its gradients.

    for x, y in loader:                       for x, y in loader:
        loss = loss_fn(model(x), y)      =>       loss = loss_fn(model(x), y)
                                                  optimizer.zero_grad()
        loss.backward()                           loss.backward()
        optimizer.step()                          optimizer.step()

`backward` adds to the gradients that are there. Each step then moves along the sum of all gradients since
training began: nothing raises, and the loss diverges or creeps.

Preconditions:

* from the second pass on, every step consumes gradients that the same optimizer has consumed before,
  whichever way undecided conditions go: accumulation over micro-batches, where a condition guards the step
  and the clearing, never does;
* nothing in the run clears them by any writing: `zero_grad` of the optimizer or of a network, `p.grad =
  None`, `p.grad.zero_()`, a helper, be it in passes that leave the step out; or what clears some of them
  (those of a part that two optimizers share) never clears the others, which certainly add up;
* no function that the model cannot see is handed the optimizer, the network or its parameters in between.
  Callbacks that are shown the object that trains (`for hook in self.hooks: hook(self)`) are taken to look on.

Gradients may be lent: `shared.grad = own.grad` makes them one tensor, as A3C's workers do with the network
that they share. Since torch 2.0 `zero_grad` sets gradients to None, which takes the tensor from the shared
network alone; the worker's own adds up. `zero_grad(set_to_none=False)` makes it zero for both.

A step that waits for several passes (`if (i + 1) % 4 == 0: optimizer.step()`) has its gradients cleared
directly behind it. Where it is not clear whether a condition waits or leaves passes out, nothing is offered.

By hand: call `optimizer.zero_grad()` once for each step, before the backward.

Effect: changes.

Severity: error.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.questions import adding_up, consuming_again, uncleared, zeros
from gradfix.autograd.run import Run
from gradfix.autograd.training_step import Entry, Program
from gradfix.codemod import Claim, Effect, Finding, Fix, ReplaceExpression, Span
from gradfix.edits import clearing_place, insert, note, stepped
from gradfix.guards import cleared_otherwise


def find(program: Program) -> Iterator[Finding]:
    """Report each optimizer that steps in a loop and whose gradients nothing clears."""
    for entry in program.entries:
        found = entry.certain(never_cleared, lambda f: f[0].site, raises=False, repeated=uncleared)
        for step, backward, whole in found:
            if cleared_otherwise(entry, step):
                continue
            name = stepped(program, step.optimizer)
            assert isinstance(step.site, ast.Call)
            what = "the gradients" if whole else "some of the gradients"
            notes = [
                note(backward.site, "each pass adds its gradients to those of all passes before"),
                note(step.site, "every step consumes the whole sum"),
            ]
            lent = _let_go(entry, step)
            if lent:
                fixes = _clear_in_place(program, lent)
                notes += [
                    note(site, "this lets go of gradients that were lent: their network keeps the sum")
                    for site in lent
                ]
            else:
                fixes = _clear(program, backward, step, name)
            yield Finding(
                "missing-zero-grad",
                f"nothing ever clears {what} that `{name or 'the optimizer'}.step()` consumes",
                Span.of(step.site),
                tuple(notes),
                fixes,
            )


def _clear(program: Program, backward: Backward, step: Step, name: str | None) -> tuple[Fix, ...]:
    if name is None:
        return ()
    place = clearing_place(program, backward, step)
    if place is None:
        return ()
    anchor, where = place
    each = "each pass" if where == "before" else "each step"
    edit = insert(anchor, where, f"{name}.zero_grad()")
    return (Fix(f"clear the gradients of {each}", Effect.CHANGES, (edit,), Claim(unchanged=())),)


def _let_go(entry: Entry, step: Step) -> list[ast.Call]:
    """Where parameters that the step moves lose gradients of another network, which keeps them."""
    owned = step.optimizer.owned()
    places = (z.site for run in entry.runs for z in zeros(run) if any(leaf in z.let_go for leaf in owned))
    return [site for site in dict.fromkeys(places) if isinstance(site, ast.Call) and site.lineno > 0]


def _clear_in_place(program: Program, sites: list[ast.Call]) -> tuple[Fix, ...]:
    """``zero_grad`` as it was before torch 2.0: what others were lent is zero for them, too."""
    if any(site.args or site.keywords for site in sites):
        return ()
    edits = (
        ReplaceExpression(Span.of(site), f"{program.segment(site.func)}(set_to_none=False)") for site in sites
    )
    return (Fix("clear the gradients in place", Effect.CHANGES, tuple(edits), Claim(unchanged=())),)


def never_cleared(run: Run) -> dict[Hashable, tuple[Step, Backward, bool]]:
    """Steps that consume gradients again which nothing clears, with whether that is so of all of them."""
    let_go = {leaf for z in zeros(run) for leaf in z.let_go}
    cleared = {leaf for z in zeros(run) for leaf in z.leaves} - let_go
    found: dict[Hashable, tuple[Step, Backward, bool]] = {}
    for step, fresh in consuming_again(run):
        whole = cleared.isdisjoint(step.consumed)
        if whole or adding_up(step) - cleared:
            found[step.site] = step, fresh, whole
    return found
