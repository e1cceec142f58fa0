"""Networks that a loss is not meant for: those that compute the input of its own, and those on its way.

That a gradient gets there is no mistake by itself, for an encoder and its head are trained so. It is one
where another loss, by way of the same networks, is for what lies behind them: then the two are players, and
each uses what the other makes, or says, as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import NoneType
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Leaf, ModuleCall, Node, OptimizerState, reachable_nodes
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    cached_by_event,
    calls_in,
    consumers,
    first_step,
    operands_reaching,
    owned_elsewhere,
    passing_gradient_to,
    same_iteration,
    without_call,
)
from gradfix.autograd.values import Const
from gradfix.rules.intent.players import detached_makers, fooling
from gradfix.rules.intent.purpose import Evidence, meant_for, purpose


class LeakPath(NamedTuple):
    """How a loss gets through its own networks, and only through these, to networks that feed them."""

    optimizer: OptimizerState
    """The one that the loss is meant for."""
    leaves: set[Leaf]
    """The parameters of the other networks."""
    nodes: set[Node]
    """What passes a gradient directly to these."""


@cached_by_event
def leak_path(run: Run, backward: Backward) -> LeakPath | None:
    """How a loss leaks into networks that compute the input of its own, if it does."""
    mine = meant_for(run, backward) if backward.certain and backward.accumulates else None
    foreign = owned_elsewhere(run, backward, mine) if mine is not None else set()
    if mine is None or not foreign:
        return None
    own = set(mine.owned())
    calls = calls_between(backward, own, foreign)
    targets = passing_gradient_to(backward.visited, foreign)
    if not calls or (targets & without_call(backward, {*calls}) and not _rejects(run, backward, targets)):
        return None
    behind = reachable_nodes([(node, True) for node in targets])
    if any(leaf in own for node in behind for leaf, _, _ in node.leaves):
        return None  # It goes through them to parameters of its own (InfoGAN).
    return LeakPath(mine, foreign, targets)


def _rejects(run: Run, backward: Backward, targets: set[Node]) -> bool:
    """Whether a loss holds what it says of another network's results against the loss of that network.

    What else it computes of these does not make it a loss for that network.
    """
    known = (fooling(run, other) for other in backwards(run) if other.loops == backward.loops)
    return any(f and f.judging is backward and operands_reaching(f.rejecting, targets) for f in known)


def calls_between(event: Backward, own: Collection[Leaf], foreign: Collection[Leaf]) -> list[ModuleCall]:
    """The calls in the graph of a loss that use some parameters and none of some others."""
    calls = calls_in(event.visited)
    return [c for c in calls if not c.leaves.isdisjoint(own) and c.leaves.isdisjoint(foreign)]


def leads_through(event: Backward, own: set[Leaf], foreign: set[Leaf]) -> bool:
    """Whether a loss leads through a network with some parameters to one with others, which feeds it."""
    targets = passing_gradient_to(event.visited, foreign)
    return any(operands_reaching(call, targets) for call in calls_between(event, own, foreign))


def opponents(run: Run, backward: Backward, path: LeakPath) -> Iterator[Backward]:
    """The losses of this iteration, or of a loop around it, that are meant for what a loss leaks into.

    They lead there by way of the networks that the loss is for.
    """
    own = set(path.optimizer.owned())
    for other in backwards(run):
        known = purpose(run, other) if same_iteration(backward, other) else None
        if known is not None and not path.leaves.isdisjoint(known.optimizer.owned()):
            # A frozen network, or one that `inputs=` leaves out, gets nothing of what goes through it.
            if known.evidence is Evidence.FOOLS or not own.isdisjoint(other.reached):
                yield other


def takes_turns(run: Run, backward: Backward, other: Backward, path: LeakPath) -> bool:
    """Whether two losses train two networks in turn, rather than one shared trunk together.

    The other loss must be for the network that feeds, or be one of several that flow through networks of
    their own into it while the loss that it has goes through these; and the first of the two must have been
    stepped on before the second is differentiated.
    """
    known, theirs = purpose(run, backward), meant_for(run, other)
    if theirs is None:
        return False
    feeds = not path.leaves.isdisjoint(theirs.owned())
    if known is not None and known.evidence is Evidence.THAWED and feeds:
        return True
    if not feeds:
        fed = leak_path(run, other)
        if fed is None or not fed.leaves & path.leaves or not any(opponents(run, backward, path)):
            return False
    first, second = sorted((backward, other), key=lambda b: b.serial)
    step = first_step(run, first)
    return step is not None and step.serial < second.serial


def passing_through(
    run: Run, event: Backward, optimizer: OptimizerState, events: list[Backward]
) -> tuple[OptimizerState, Backward] | None:
    """Whether a loss, of several whose gradients an optimizer has, goes through its network to another's.

    That is certain where it fools the network, or where a loss of the optimizer's own calls the same network
    and says what the two are to each other: it takes what the other network makes for a constant, or it has a
    target where this loss has none. Then that optimizer is told, and the first loss that is for this one.
    """
    fools = fooling(run, event)
    if fools is not None and fools.judge is optimizer and fools.judging in events:
        others = (e for e in events if (f := fooling(run, e)) is None or f.judge is not optimizer)
        return (fools.maker, next(others))
    for other in events:
        fools = fooling(run, other)
        if fools is not None and fools.maker is optimizer and fools.judging is event:
            # What both use cannot be detached for one of them: see undetached-fake for the rest.
            if not {*calls_in(event.visited)}.isdisjoint(_of(other, set(fools.judge.owned()))):
                return (fools.judge, other)
    mine = set(optimizer.owned())
    maker = _maker_behind(run, event, mine)
    own = [one for one in events if mine >= one.reached.keys()]
    if maker is None or not own:
        return None
    networks = {call.module for call in _of(event, mine)}
    calls = [call for one in own for call in _of(one, mine) if call.module in networks]
    aimless = _compares_with_nothing(event, mine)
    if not any(aimless or maker in detached_makers(run, call) for call in calls):
        return None
    step = first_step(run, event)
    if step is not None and step.serial < own[0].serial:
        return None  # What is cleared at the wrong moment is misplaced-zero-grad.
    return (maker, own[0])


def _maker_behind(run: Run, event: Backward, mine: set[Leaf]) -> OptimizerState | None:
    """The optimizer of the network to which a loss goes through one of these."""
    if not event.certain or not event.accumulates or event.failure is not None:
        return None
    taking = consumers(run, event)
    for theirs in (one.state for one in run.optimizers if one.state in taking):
        owned = set(theirs.owned())
        if mine.isdisjoint(owned) and leads_through(event, mine, owned):
            return theirs
    return None


def _of(event: Backward, leaves: set[Leaf]) -> list[ModuleCall]:
    """The calls of networks, with these parameters only, that a loss goes through."""
    return [call for call in calls_in(event.visited) if call.leaves and call.leaves <= leaves]


def _compares_with_nothing(event: Backward, mine: set[Leaf]) -> bool:
    """Whether a loss is made of what these networks say and of numbers alone: it has no target."""
    inside = {node for call in _of(event, mine) for node in event.visited if node.call is call}
    waiting, seen = list(event.roots), set[Node]()
    while waiting:
        at = waiting.pop()
        if at in inside or at in seen:
            continue
        seen.add(at)
        other = at.graphless_operand[1] if at.graphless_operand is not None else None
        if at.call is not None or at.leaves or at.data_operands or not isinstance(other, (Const, NoneType)):
            return False
        waiting += [edge.node for edge in at.edges]
    return bool(inside)
