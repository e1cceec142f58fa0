"""An optimizer's step also uses gradients that the loss of another optimizer has added to its parameters.
Nothing raises. In a GAN the discriminator is trained towards being fooled, as much as away from it.

    og.zero_grad()                       og.zero_grad()
    od.zero_grad()                       od.zero_grad()
    g_loss = criterion(D(fake), ones)    g_loss = criterion(D(fake), ones)
    g_loss.backward()               =>   g_loss.backward()
    d_loss = ...D(fake.detach())...      d_loss = ...D(fake.detach())...
    d_loss.backward()                    od.zero_grad()
    og.step()                            d_loss.backward()
    od.step()                            og.step()
                                         od.step()

The generator's loss goes through the discriminator to the generator, and adds gradients to both. Where
nothing clears the discriminator's before its step, that step uses the sum of both.

When not to fix it: where the other loss should train this network as well.

Preconditions:

* a step certainly uses two losses of different backward calls of its iteration;
* the one goes through a network of this optimizer to one that another optimizer moves, whose step uses it;
* the other is for this optimizer alone, and calls the same network; either on something that the other
  network has computed and that was detached, or computed without a graph: for this step, that is a constant;
  or the one compares what the network says with nothing (`-critic(states, actor(states)).mean()`): it trains
  the other network by it, and would drive this one away from its own loss;
* the other optimizer does not step between the two (see misplaced-zero-grad), this one does not use its
  gradients again and again (see missing-zero-grad), the two do not step on each other's losses (see
  wrong-optimizer), and nothing reads gradients in between.

Two optimizers may have parameters in common: an encoder that is trained with its decoder, and against a
discriminator. Where the one has stepped on its loss, and the other one's loss is backpropagated after that,
the second step uses both losses, the first one for the second time.

The gradients are cleared before the first backward of the optimizer's own losses, if the other loss comes
before it and the step waits for no further iterations: what was accumulated on purpose would be cleared as
well. Else the other loss is told for whose parameters it is: `g_loss.backward(inputs=list(G.parameters()))`.

By hand: step before the backward of the other loss, on a fresh forward, or restrict that backward:
`g_loss.backward(inputs=list(G.parameters()))`.

Effect: changes.

Severity: error.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from gradfix.autograd.graph import Backward, OptimizerState, Step
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    calls_in,
    consuming_again,
    first_step,
    leading_to,
    steps,
)
from gradfix.core.codemod import Claim, Effect, Finding, Fix, Note
from gradfix.core.span import Span
from gradfix.rules import conditional_steps
from gradfix.rules.edits import constructed, insert, note, only_for, receiver, stepped, within_file
from gradfix.rules.intent.misdirected_steps import swapped
from gradfix.rules.intent.players import passing_through


class Leak(NamedTuple):
    """A step that consumes another optimizer's loss beside one of its own."""

    run: Run
    step: Step
    foreign: Backward
    meant_for: OptimizerState
    own: Backward
    """The first loss of its own that the step consumes."""


def find(program: Program) -> Iterator[Finding]:
    """Report each step that consumes another optimizer's loss."""
    for entry in program.entry_points:
        for leak in entry.certain_observations(leaks, lambda one: one.step.site, raises=False):
            yield _finding(program, leak)


def leaks(run: Run) -> dict[Hashable, Leak]:
    """By place: the steps that consume another optimizer's loss beside their own."""
    found: dict[Hashable, Leak] = {}
    optimizers = [one.state for one in run.optimizers]
    if len(optimizers) < 2 or run.external_optimizers or not all(one.groups_known for one in optimizers):
        return found
    again = {step.optimizer for step, _ in consuming_again(run)}
    for step in steps(run):
        if step.doubtful or step.site in found or step.optimizer in again or swapped(run, step):
            continue
        left = _left_over(run, step)
        if left is not None:
            found[step.site] = left
            continue
        taken = {event: None for held in step.consumed.values() for event, (sure, _) in held.items() if sure}
        events = sorted((e for e in taken if e.loops == step.loops), key=lambda event: event.serial)
        for event in events:
            passing = passing_through(run, event, step.optimizer, events)
            if passing is not None and not run.grad_read_between(event.serial, step.serial):
                found[step.site] = Leak(run, step, event, passing.maker, passing.own)
                break
    return found


def _left_over(run: Run, step: Step) -> Leak | None:
    """What a step consumes of parameters that two optimizers have, and the other one has stepped on before.

    A loss of its own was differentiated after that, and is added to what is left.
    """
    for leaf, held in step.consumed.items():
        sure = [event for event, (certain, _) in held.items() if certain and event.loops == step.loops]
        for event in sure:
            before = first_step(run, event)
            if before is None or before.optimizer is step.optimizer or before.loops != step.loops:
                continue
            if before.doubtful or event not in before.consumed.get(leaf, ()):
                continue
            own = next((one for one in sure if one.serial > before.serial), None)
            if own is None or own.serial > step.serial or run.grad_read_between(event.serial, step.serial):
                continue
            return Leak(run, step, event, before.optimizer, own)
    return None


def _finding(program: Program, leak: Leak) -> Finding:
    name = stepped(program, leak.step.optimizer, leak.own.site) or "the optimizer"
    other = stepped(program, leak.meant_for, leak.own.site) or "another optimizer"
    foreign, own = receiver(program, leak.foreign), receiver(program, leak.own)
    notes: list[Note] = [
        note(leak.foreign.site, f"`{foreign}` is for `{other}`, and adds gradients for `{name}` as well"),
        note(leak.own.site, f"the gradients of `{own}` are added to these"),
        note(leak.step.site, f"`{name}` uses the sum of both"),
    ]
    fixes = within_file(_cleared(program, leak))
    if not fixes:
        choices = f"step `{name}` before this, or pass `inputs=` to this backward"
        notes.append(note(leak.foreign.site, choices))
    message = f"`{name}.step()` also uses gradients from `{foreign}`, which is the loss of `{other}`"
    assert isinstance(leak.step.site, ast.Call)
    return Finding("leaking-loss", message, Span.of(leak.step.site), tuple(notes), fixes)


def _cleared(program: Program, leak: Leak) -> Iterator[Fix]:
    """The gradients, cleared before the first of the optimizer's own losses is differentiated."""
    name = stepped(program, leak.step.optimizer, leak.own.site)
    claim = Claim(unchanged=constructed(leak.run, leak.meant_for))
    at_once = conditional_steps.clearing_statement(program, leak.own, leak.step) is True
    if name is not None and at_once and leak.foreign.serial < leak.own.serial:
        edit = insert(program.statement(leak.own.site), "before", f"{name}.zero_grad()")
        yield Fix("clear the gradients of the other loss first", Effect.CHANGES, (edit,), claim)
    elif not set(leak.meant_for.owned()) & set(leak.step.optimizer.owned()):
        mine = set(leak.meant_for.owned())
        way = leading_to(leak.foreign.visited, mine)
        later = (b for b in backwards(leak.run) if b.serial > leak.foreign.serial)
        again = any(not way.isdisjoint(b.visited) for b in later)
        calls = calls_in(leak.foreign.visited)
        restricted = only_for(program, leak.foreign, leak.meant_for, calls, needed_again=again)
        if restricted is not None:
            other = receiver(program, leak.foreign)
            words = f"restrict the backward of `{other}` to the parameters of its own optimizer"
            yield Fix(words, Effect.CHANGES, (restricted,), claim)
