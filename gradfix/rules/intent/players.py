"""Two players: which of two networks a loss trains, and which it only goes through. No name decides.

A loss goes through the network of one optimizer to the network of another, which made its input, and holds
what the former says of it to what that one's own loss holds real data to. It *fools* the former and trains
the latter, whatever the order of backwards and steps is.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    passing_gradient_to,
)
from gradfix.autograd.values import Const, Tensor, Unknown, Value, tensors_in
from gradfix.rules.intent.goals import Held, contrary, goals


class Fooling(NamedTuple):
    """Two players, and the losses by which they are told."""

    judge: OptimizerState
    """The optimizer of the network that is fooled."""
    maker: OptimizerState
    """The optimizer of the network that makes what is judged: the loss is for this one."""
    judging: Backward
    """The judge's own loss of what the maker has made."""


@cached_by_event
def fooling(run: Run, event: Backward) -> Fooling | None:
    """The players, if a loss is meant to train one of them by fooling the other."""
    if not event.certain or not event.accumulates or event.failure is not None:
        return None
    here = [b for b in backwards(run) if b.loops == event.loops and b.certain and b.accumulates]
    known: list[tuple[Backward, Held]] = [(b, held) for b in here for held in _held(run, b)]
    for held in _held(run, event):
        judge = _owner(run, held.call.leaves)
        makers = _feeding(run, held.call) - {judge} if judge is not None else set()
        if judge is None or len(makers) != 1:
            continue
        (maker,) = makers
        same = [(b, other) for b, other in known if other.call.module is held.call.module]
        against = (b for b, o in same if contrary(o.goal, held.goal) and maker in _makers(run, o.call))
        judging = next(against, None)
        real = any(o.goal == held.goal and b is not event and not _makers(run, o.call) for b, o in same)
        if judging is not None and judging is not event and real:
            return Fooling(judge, maker, judging)
    return None


@cached_by_event
def _held(run: Run, event: Backward) -> list[Held]:
    return list(goals(event))


def _owner(run: Run, leaves: set[Leaf]) -> OptimizerState | None:
    """The only optimizer that owns any of some parameters, if it owns all of them."""
    owners = [o.state for o in run.optimizers if not leaves.isdisjoint(o.state.owned())]
    return owners[0] if len(owners) == 1 and leaves <= set(owners[0].owned()) else None


def _makers(run: Run, call: ModuleCall) -> set[OptimizerState]:
    """The optimizers of the networks that have computed what a call is given."""
    return _feeding(run, call) | _detached(run, call)


def _feeding(run: Run, call: ModuleCall) -> set[OptimizerState]:
    """The optimizers of the networks to which a gradient flows from the operands of a call."""
    operands = (
        tensor for _, value in call.operands if isinstance(value, Value) for tensor in tensors_in(value)
    )
    return _owning(run, (tensor.node for tensor in operands if tensor.node is not None))


def _detached(run: Run, call: ModuleCall) -> set[OptimizerState]:
    """The optimizers of the networks that have computed an operand of a call, which has lost its graph."""
    found: list[Node] = []
    for _, value in call.operands:
        if isinstance(value, Tensor) and value.detached_from is not None:
            found.append(value.detached_from[0])
        elif isinstance(value, (Tensor, Unknown)) and value.lost is not None:
            found += [value.lost.graph] if isinstance(value.lost.graph, Node) else []
    return _owning(run, found)


def _owning(run: Run, nodes: Iterable[Node]) -> set[OptimizerState]:
    """The optimizers of parameters that some values were computed from."""
    below = reachable_nodes([(node, True) for node in nodes])
    leaves = {leaf for node in below for leaf, _, _ in node.leaves}
    return {one.state for one in run.optimizers if not leaves.isdisjoint(one.state.owned())}


class Passing(NamedTuple):
    """A loss for another optimizer, whose gradients come to this one only because they pass through."""

    maker: OptimizerState
    """The optimizer that the loss is for."""
    own: Backward
    """The first loss of those at hand that is for this optimizer itself."""


def passing_through(
    run: Run, event: Backward, optimizer: OptimizerState, events: list[Backward]
) -> Passing | None:
    """Whether a loss, of several whose gradients an optimizer has, goes through its network to another's.

    That is certain where it fools the network, or where a loss of the optimizer's own calls the same network
    and says what the two are to each other: it takes what the other network makes for a constant, or it has a
    target where this loss has none.
    """
    fools = fooling(run, event)
    if fools is not None and fools.judge is optimizer and fools.judging in events:
        others = (e for e in events if (f := fooling(run, e)) is None or f.judge is not optimizer)
        return Passing(fools.maker, next(others))
    for other in events:
        fools = fooling(run, other)
        if fools is not None and fools.maker is optimizer and fools.judging is event:
            # What both use cannot be detached for one of them: see undetached-fake for the rest.
            if not {*calls_in(event.visited)}.isdisjoint(_of(other, set(fools.judge.owned()))):
                return Passing(fools.judge, other)
    mine = set(optimizer.owned())
    maker = _maker_behind(run, event, mine)
    own = [one for one in events if mine >= one.reached.keys()]
    if maker is None or not own:
        return None
    networks = {call.module for call in _of(event, mine)}
    calls = [call for one in own for call in _of(one, mine) if call.module in networks]
    aimless = _compares_with_nothing(event, mine)
    if not any(aimless or maker in _detached(run, call) for call in calls):
        return None
    step = first_step(run, event)
    if step is not None and step.serial < own[0].serial:
        return None  # What is cleared at the wrong moment is misplaced-zero-grad.
    return Passing(maker, own[0])


def _maker_behind(run: Run, event: Backward, mine: set[Leaf]) -> OptimizerState | None:
    """The optimizer of the network to which a loss goes through one of these."""
    if not event.certain or not event.accumulates or event.failure is not None:
        return None
    taking = consumers(run, event)
    for optimizer in (one.state for one in run.optimizers if one.state in taking):
        theirs = set(optimizer.owned())
        if theirs & mine:
            continue
        targets = passing_gradient_to(event.visited, theirs)
        if targets and any(operands_reaching(call, targets) for call in _of(event, mine)):
            return optimizer
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
