"""Layers are checkpointed on inputs that do not require grad, so their parameters get no gradient.
torch only warns ("None of the inputs have requires_grad=True. Gradients will be None"), and the layers are
never trained.

    x = frozen(images).detach()                     x = frozen(images).detach()
    x = checkpoint(block, x)                  =>    x = checkpoint(block, x, use_reentrant=False)
    loss = loss_fn(head(x), y)                      loss = loss_fn(head(x), y)

Reentrant `torch.utils.checkpoint`, which is the default where nothing is said, only looks at the inputs of
the layers. Where none of these requires grad, the result does not either, whatever parameters the layers
have. This is so for the first layers of any network, and for those behind frozen ones.

When not to fix it: where the layers are frozen.

Preconditions:

* all that is handed to the layers is certainly data: it has no graph, and requires no gradient;
* the layers have parameters that require one, and that an optimizer owns which steps.

`use_reentrant=False` is said in the call.

By hand: iteration `use_reentrant=False`.

Effect: changes.

Severity: error.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from gradfix.autograd.graph import OptimizerState, ReentrantCheckpoint
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import of_kind, steps
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.edits import line, note, shown, stepped, with_argument, within_file


class Untrained(NamedTuple):
    """Layers that get no gradient, and the optimizer that owns them."""

    event: ReentrantCheckpoint
    optimizer: OptimizerState


def find(program: Program) -> Iterator[Finding]:
    """Report each checkpoint by which layers get no gradient."""
    for one in program.certain_observations(without_gradients, lambda u: u.event.site, raises=False):
        if line(one.event.site) > 0:
            yield _finding(program, one)


def without_gradients(run: Run) -> dict[Hashable, Untrained]:
    """By place: the checkpoints on data of layers that are to be trained."""
    found: dict[Hashable, Untrained] = {}
    stepping = dict.fromkeys(step.optimizer for step in steps(run))
    for event in of_kind(run, ReentrantCheckpoint):
        trained = {leaf for leaf in event.leaves if leaf.requires is True and not leaf.unknown_grad}
        for optimizer in stepping:
            if not trained.isdisjoint(optimizer.owned()):
                found.setdefault(event.site, Untrained(event, optimizer))
    return found


def _finding(program: Program, one: Untrained) -> Finding:
    site = one.event.site
    assert isinstance(site, ast.Call)
    layers = shown(program, site.args[0]) if site.args else "the layers"
    name = stepped(program, one.optimizer) or "an optimizer"
    return Finding(
        "reentrant-checkpoint",
        f"`{layers}` is checkpointed on inputs that do not require grad: its parameters get no gradient",
        Span.of(site),
        (note(site, f"the result has no graph, although `{name}` has parameters of `{layers}`"),),
        within_file(_fixes(program, site)),
    )


def _fixes(program: Program, site: ast.Call) -> Iterator[Fix]:
    said = next((k.value for k in site.keywords if k.arg == "use_reentrant"), None)
    if said is not None:
        edit = ReplaceExpression(Span.of(said), "False")
    else:
        edit = ReplaceExpression(Span.of(site), with_argument(program, site, "use_reentrant=False"))
    claim = Claim(unchanged=(), same_forwards=False, losses="rerouted")
    yield Fix("pass `use_reentrant=False`", Effect.CHANGES, (edit,), claim)
