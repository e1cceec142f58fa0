"""Two players: which of two networks a loss trains, and which it only goes through. No name decides.

A loss goes through the network of one optimizer to the network of another, which made its input, and holds
what the former says of it to what that one's own loss holds real data to. It *fools* the former and trains
the latter, whatever the order of backwards and steps is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Leaf, ModuleCall, Node, OptimizerState, reachable_nodes
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    cached_by_event,
)
from gradfix.autograd.values import Tensor, Unknown, Value, tensors_in
from gradfix.rules.intent.goals import Held, contrary, goals


class Fooling(NamedTuple):
    """Two players, and the losses by which they are told."""

    loss: Backward
    """What fools the judge."""
    judge: OptimizerState
    """The optimizer of the network that is fooled."""
    maker: OptimizerState
    """The optimizer of the network that makes what is judged: the loss is for this one."""
    judging: Backward
    """The judge's own loss of what the maker has made."""
    judged: ModuleCall
    """The call of the judge's network in the loss that fools it."""
    rejecting: ModuleCall
    """The call in the judge's own loss that is held to the contrary."""


@cached_by_event
def fooling(run: Run, event: Backward) -> Fooling | None:
    """The players, if a loss is meant to train one of them by fooling the other."""
    if not event.certain or not event.accumulates or event.failure is not None:
        return None
    here = [b for b in backwards(run) if b.loops == event.loops and b.certain and b.accumulates]
    known: list[tuple[Backward, Held]] = [(b, held) for b in here for held in _held(run, b)]
    for held in _held(run, event):
        feeding = _feeding(run, held.call)
        judge = _owner(run, held.call.leaves, feeding)
        makers = feeding - {judge}
        if judge is None or len(makers) != 1:
            continue
        (maker,) = makers
        same = [(b, other) for b, other in known if other.call.module is held.call.module]
        against = (x for x in same if contrary(x[1].goal, held.goal) and maker in _makers(run, x[1].call))
        judging, rejecting = next(against, (None, held))
        real = any(o.goal == held.goal and b is not event and not _makers(run, o.call) for b, o in same)
        if judging is not None and judging is not event and real:
            return Fooling(event, judge, maker, judging, held.call, rejecting.call)
    return None


@cached_by_event
def _held(run: Run, event: Backward) -> list[Held]:
    return list(goals(event))


def _owner(run: Run, leaves: set[Leaf], feeding: set[OptimizerState]) -> OptimizerState | None:
    """The only optimizer that owns any of a network's parameters, if it owns all of them.

    Of several, the only one that owns nothing of what feeds the network.
    """
    owners = [o.state for o in run.optimizers if not leaves.isdisjoint(o.state.owned())]
    if not all(leaves <= set(state.owned()) for state in owners):
        return None
    alone = owners if len(owners) == 1 else [state for state in owners if state not in feeding]
    return alone[0] if len(alone) == 1 else None


def _makers(run: Run, call: ModuleCall) -> set[OptimizerState]:
    """The optimizers of the networks that have computed what a call is given."""
    return _feeding(run, call) | detached_makers(run, call)


def _feeding(run: Run, call: ModuleCall) -> set[OptimizerState]:
    """The optimizers of the networks to which a gradient flows from the operands of a call."""
    operands = (
        tensor for _, value in call.operands if isinstance(value, Value) for tensor in tensors_in(value)
    )
    return _owning(run, (tensor.node for tensor in operands if tensor.node is not None))


def detached_makers(run: Run, call: ModuleCall) -> set[OptimizerState]:
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
