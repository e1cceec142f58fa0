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
  whichever way undecided conditions go: accumulation over micro-batches, where a condition guards the step,
  never does;
* nothing in the run clears them by any writing: `zero_grad` of the optimizer or of a network, `p.grad =
  None`, `p.grad.zero_()`, a helper; or what clears some of them (those of a part that two optimizers share)
  never clears the others, which certainly add up;
* no function that the model cannot see is handed the optimizer, the network or its parameters in between.
  Callbacks that are shown the object that trains (`for hook in self.hooks: hook(self)`) are taken to look on.

Effect: changes.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.graph import Backward, Step
from gradfix.autograd.interpreter import Run
from gradfix.autograd.questions import adding_up, consuming_again, zeros
from gradfix.autograd.training_step import Program
from gradfix.codemod import Claim, Effect, Finding, Fix, Span
from gradfix.edits import clearing_place, insert, note, stepped


def find(program: Program) -> Iterator[Finding]:
    """Report each optimizer that steps in a loop and whose gradients nothing clears."""
    for entry in program.entries:
        found = entry.certain(never_cleared, lambda f: f[0].site, raises=False, repeated=True)
        for step, backward, whole in found:
            name = stepped(program, step.optimizer)
            statement = clearing_place(program, backward, step)
            fixes: tuple[Fix, ...] = ()
            if name is not None:
                edit = insert(statement, "before", f"{name}.zero_grad()")
                fixes = (
                    Fix("clear the gradients of each pass", Effect.CHANGES, (edit,), Claim(unchanged=())),
                )
            what = "the gradients" if whole else "some of the gradients"
            assert isinstance(step.site, ast.Call)
            yield Finding(
                "missing-zero-grad",
                f"nothing ever clears {what} that `{name or 'the optimizer'}.step()` consumes",
                Span.of(step.site),
                (
                    note(backward.site, "each pass adds its gradients to those of all passes before"),
                    note(step.site, "every step consumes the whole sum"),
                ),
                fixes,
            )


def never_cleared(run: Run) -> dict[Hashable, tuple[Step, Backward, bool]]:
    """Steps that consume gradients again which nothing clears, with whether that is so of all of them."""
    cleared = {leaf for z in zeros(run) for leaf in z.leaves}
    found: dict[Hashable, tuple[Step, Backward, bool]] = {}
    for step, fresh in consuming_again(run):
        whole = cleared.isdisjoint(step.optimizer.owned())
        if whole or adding_up(step) - cleared:
            found[step.site] = step, fresh, whole
    return found
