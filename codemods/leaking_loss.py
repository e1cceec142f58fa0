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

An optimizer may also have been given the network of the other player, beside its own: the generator's steps
on D too, by the loss that fools D, or the discriminator's on G, which D's loss reaches. That is certain where
one optimizer is for a network alone, and its loss holds what this says of the other network's results to the
contrary. It is reported without a rewrite.

The gradients are cleared before the first backward of the optimizer's own losses, if the other loss comes
before it and the step waits for no further iterations: what was accumulated on purpose would be cleared as
well. Else the other loss is told for whose parameters it is: `g_loss.backward(inputs=list(G.parameters()))`.

By hand: step before the backward of the other loss, on a fresh forward, or restrict that backward:
`g_loss.backward(inputs=list(G.parameters()))`.

Effect: changes.

Severity: error.
Clause: no other loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.autograd.program import Program
from gradfix.autograd.trace_queries import (
    backwards,
    calls_in,
    leading_to,
)
from gradfix.core.codemod import Claim, Effect, Finding, Fix, Note
from gradfix.core.span import Span
from gradfix.rules import conditional_steps
from gradfix.rules.clauses import Misowned, Stray, other_players_owned, strays
from gradfix.rules.edits import (
    constructed,
    insert,
    network,
    note,
    only_for,
    receiver,
    shown,
    stepped,
    within_file,
)


def find(program: Program) -> Iterator[Finding]:
    """Report each step that consumes another optimizer's loss."""
    for leak in program.certain_observations(strays, lambda one: one.step.site, raises=False):
        yield _finding(program, leak)
    for one in program.certain_observations(other_players_owned, lambda m: m.step.site, raises=False):
        yield _misowned(program, one)


def _misowned(program: Program, one: Misowned) -> Finding:
    name = stepped(program, one.step.optimizer) or "the optimizer"
    other = stepped(program, one.other) or "another optimizer"
    net, loss = shown(program, network(one.network)), receiver(program, one.loss)
    notes = (
        note(one.step.optimizer.created, f"`{name}` is given the parameters of `{net}`"),
        note(one.loss.site, f"`{loss}` works against the loss by which `{other}` trains `{net}`"),
    )
    message = f"`{name}.step()` also trains `{net}`, on `{loss}`: that is the network of `{other}`"
    advice = f"leave the parameters of `{net}` out of `{name}`"
    assert isinstance(one.step.site, ast.Call)
    return Finding("leaking-loss", message, Span.of(one.step.site), notes, advice=advice)


def _finding(program: Program, leak: Stray) -> Finding:
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


def _cleared(program: Program, leak: Stray) -> Iterator[Fix]:
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
