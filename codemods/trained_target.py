"""A loss trains its target, which the network itself computes from the next state.
Each step also moves the target towards the prediction. Nothing raises, and the loss goes down.

    target = r + gamma * q(s2).max(1)[0]            target = r + gamma * q(s2).max(1)[0]
    loss = mse_loss(q(s).gather(1, a), target)  =>  loss = mse_loss(q(s).gather(1, a), target.detach())
    loss.backward()                                 loss.backward()

The network's value of the next state, discounted and with a reward added, is the target: a constant towards
which the prediction is trained. Where the prediction is detached instead, the loss trains the target alone.

So is a teacher trained by its pupil's loss, where the optimizer was given both and the teacher is not
detached.

When not to fix it: where the whole Bellman error is minimised on purpose.

Preconditions:

* the loss compares two operands by a distance or a difference: one is, but for its shape, what a network has
  made from data; the other is what the same network has made in another call, multiplied and added to data;
* where the prediction is detached, the loss reaches the network by way of that target alone;
* where it is not, something says that the network estimates what is to come: the value of one action is
  picked out of several, or another optimizer's loss goes through the network, or there are likelihoods of
  actions. An equation that a network is to solve, `u(t + 1) = u(t) / 2 + f(t)`, trains both sides by right.

A teacher is a network in eval mode, in a loss with one in training mode, that gets gradients in no other way
than as the target of a criterion, and that the optimizer certainly moves. It is reported without a rewrite:
its output is to be detached, or it is to be left out of the optimizer.

By hand: detach the target, or compute it under `torch.no_grad()`; the prediction keeps its graph. To minimise
the whole Bellman error by intent, say so (`# gradfix: ignore[trained-target]`).

Effect: changes.

Severity: error.
Clause: no other loss.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards
from gradfix.core.codemod import Claim, Effect, Finding, Fix, ReplaceExpression
from gradfix.core.span import Span
from gradfix.rules.edits import (
    constructed_beside,
    detach_at,
    line,
    note,
    receiver,
    shown,
    stepped,
    within_file,
)
from gradfix.rules.intent.purpose import meant_for
from gradfix.rules.targets import (
    TrainedTarget,
    TrainedTeacher,
    bootstrapped,
    trained_target,
    trained_teacher,
)


def find(program: Program) -> Iterator[Finding]:
    """Report each target that a loss trains."""
    for found in program.certain_observations(trained, lambda one: one.backward.site, raises=False):
        yield _finding(program, found)
    for pair in program.certain_observations(taught, lambda one: one.backward.site, raises=False):
        yield _teacher_finding(program, pair)


def trained(run: Run) -> dict[Hashable, TrainedTarget]:
    """By the place of the target: losses that train it."""
    every = (trained_target(run, event) for event in backwards(run))
    return {one.target: one for one in every if one is not None and bootstrapped(one)}


def taught(run: Run) -> dict[Hashable, TrainedTeacher]:
    """By the place of their call: teachers that a loss trains."""
    every = (trained_teacher(run, event) for event in backwards(run))
    return {one.call.site: one for one in every if one is not None}


def _teacher_finding(program: Program, one: TrainedTeacher) -> Finding:
    name, loss = stepped(program, one.step.optimizer) or "the optimizer", receiver(program, one.backward)
    place = next((site for site, _ in reversed(one.call.stack) if line(site) > 0), one.call.site)
    assert isinstance(place, ast.expr)
    said = shown(program, place)
    notes = (
        note(place, f"this is a target of `{loss}`, and is not detached"),
        note(one.step.optimizer.created, f"`{name}` is given the parameters of what computes it"),
        note(one.step.site, "each step moves the target towards the prediction"),
    )
    message = f"`{loss}` also trains the teacher, in eval mode, that computes its target `{said}`"
    advice = f"compute `{said}` under `torch.no_grad()`, and leave the teacher out of `{name}`"
    return Finding("trained-target", message, Span.of(place), notes, advice=advice)


def _finding(program: Program, one: TrainedTarget) -> Finding:
    loss, target = receiver(program, one.backward), shown(program, one.target)
    optimizer = meant_for(one.run, one.backward)
    who = (stepped(program, optimizer) if optimizer is not None else None) or "its optimizer"
    shared = "the target is not detached, and gets gradients too"
    notes = [note(one.call.site, f"`{target}` is computed here by the network that is trained")]
    message = f"`{loss}` trains its target `{target}` as well as the prediction"
    if one.detached is not None:
        notes = [note(one.detached, "the prediction is detached, and gets no gradient")]
        message = f"`{loss}` trains its target `{target}` instead of the prediction, which is detached"
    notes += [
        note(one.target, shared),
        note(one.backward.site, f"`{who}` uses the gradients that the target gets here"),
    ]
    place = one.target if one.detached is None else one.detached
    return Finding("trained-target", message, Span.of(place), tuple(notes), within_file(_fixes(program, one)))


def _fixes(program: Program, one: TrainedTarget) -> Iterator[Fix]:
    edits = [detach_at(program, one.target)]
    what = f"detach `{shown(program, one.target)}`"
    if one.detached is not None:
        assert isinstance(one.detached.func, ast.Attribute)
        prediction = one.detached.func.value
        edits.append(ReplaceExpression(Span.of(one.detached), program.segment(prediction)))
        what += f" instead of `{shown(program, prediction)}`"
    unchanged = constructed_beside(one.run, meant_for(one.run, one.backward))
    yield Fix(what, Effect.CHANGES, tuple(edits), Claim(unchanged=unchanged, losses="rerouted"))
