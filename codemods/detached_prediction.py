"""A loss trains its target, and the prediction is detached.

    target = r + gamma * critic(s2)                 target = r + gamma * critic(s2)
    loss = mse_loss(critic(s).detach(), target) =>  loss = mse_loss(critic(s), target.detach())
    loss.backward()                                 loss.backward()

What a network says of the next state, discounted and with a reward added, is what it is to say of this one:
the target is the constant, and the prediction learns. Detached the other way round, each step moves what is
said of the next state towards what is said of this one. Nothing raises, and the loss goes down.

Preconditions:

* the loss compares two operands by a distance or a difference: one is, but for its shape, what a network has
  made of data, and is detached; the other is what the same network has made in another call, multiplied and
  added to data;
* the loss reaches the network by way of that target alone.

By hand: detach the target, and let the prediction keep its graph.

Effect: changes.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.questions import backwards, owner
from gradfix.autograd.run import Run
from gradfix.autograd.training_step import Program
from gradfix.codemod import Claim, Effect, Finding, Fix, ReplaceExpression, Span
from gradfix.edits import constructed, note, offered, receiver, shown, stepped
from gradfix.segments import call_method
from gradfix.targets import TrainedTarget, trained_target


def find(program: Program) -> Iterator[Finding]:
    """Report each loss that is taught to the target."""
    for entry in program.entries:
        for found in entry.certain(trained, lambda one: one.backward.site, raises=False):
            yield _finding(program, found)


def trained(run: Run) -> dict[Hashable, TrainedTarget]:
    """By the place of the detach: losses whose target is trained."""
    every = (trained_target(run, event) for event in backwards(run))
    return {one.detached: one for one in every if one is not None}


def _finding(program: Program, one: TrainedTarget) -> Finding:
    loss, target = receiver(program, one.backward), shown(program, one.target)
    optimizer = owner(one.run, one.backward)
    who = (stepped(program, optimizer) if optimizer is not None else None) or "its optimizer"
    notes = (
        note(one.detached, "the prediction is detached, and learns nothing"),
        note(one.target, "the target has a graph, and is trained"),
        note(one.backward.site, f"`{who}` steps on what this gives to the target"),
    )
    message = f"`{loss}` trains its target `{target}`, and the prediction is detached"
    return Finding(
        "detached-prediction", message, Span.of(one.detached), notes, offered(_fixes(program, one))
    )


def _fixes(program: Program, one: TrainedTarget) -> Iterator[Fix]:
    assert isinstance(one.detached.func, ast.Attribute)
    prediction = one.detached.func.value
    others = [o.state for o in one.run.optimizers if o.state is not owner(one.run, one.backward)]
    edits = (
        ReplaceExpression(Span.of(one.detached), program.segment(prediction)),
        ReplaceExpression(
            Span.of(one.target), call_method(program.segment(one.target), one.target, "detach")
        ),
    )
    unchanged = tuple(number for state in others for number in constructed(one.run, state))
    what = f"detach `{shown(program, one.target)}` instead of `{shown(program, prediction)}`"
    yield Fix(what, Effect.CHANGES, edits, Claim(unchanged=unchanged))
