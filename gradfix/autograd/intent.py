"""Whom a loss is meant for, as far as a run tells. No name decides.

Two players: a loss goes through the network of one optimizer to the network of another, which made its input,
and holds what the former says of it to what that one's own loss holds real data to. It *fools* the former and
trains the latter, whatever the order of backwards and steps is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradfix.autograd.goals import Held, contrary, goals
from gradfix.autograd.graph import Backward, Leaf, ModuleCall, Node, OptimizerState, reach
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import answered, backwards
from gradfix.autograd.values import Tensor, Unknown, Value, tensors_in


class Fooling(NamedTuple):
    """Two players, and the losses by which they are told."""

    judge: OptimizerState
    """The optimizer of the network that is fooled."""
    maker: OptimizerState
    """The optimizer of the network that makes what is judged: the loss is for this one."""
    judging: Backward
    """The judge's own loss of what the maker has made."""


@answered
def fooling(run: Run, event: Backward) -> Fooling | None:
    """The players, if a loss is meant to train one of them by fooling the other."""
    if not event.certain or not event.accumulates or event.failure is not None:
        return None
    here = [b for b in backwards(run) if b.loops == event.loops and b.certain and b.accumulates]
    known: list[tuple[Backward, Held]] = [(b, held) for b in here for held in goals(b)]
    for held in goals(event):
        judge = _owner(run, held.call.leaves)
        makers = _behind(run, held.call, graph=True) - {judge} if judge is not None else set()
        if judge is None or len(makers) != 1:
            continue
        (maker,) = makers
        same = [(b, other) for b, other in known if other.call.module is held.call.module]
        against = (b for b, o in same if contrary(o.goal, held.goal) and maker in _behind(run, o.call))
        judging = next(against, None)
        real = any(o.goal == held.goal and b is not event and not _behind(run, o.call) for b, o in same)
        if judging is not None and judging is not event and real:
            return Fooling(judge, maker, judging)
    return None


def _owner(run: Run, leaves: set[Leaf]) -> OptimizerState | None:
    """The only optimizer that owns any of some parameters, if it owns all of them."""
    owners = [o.state for o in run.optimizers if not leaves.isdisjoint(o.state.owned())]
    return owners[0] if len(owners) == 1 and leaves <= set(owners[0].owned()) else None


def _behind(run: Run, call: ModuleCall, graph: bool = False) -> set[OptimizerState]:
    """The optimizers of what has computed the operands of a call, with a ``graph`` still, or detached."""
    leaves = {
        leaf
        for node in _made_by(call, graph)
        for below in reach([(node, True)])
        for leaf, _, _ in below.leaves
    }
    owners = (o.state for o in run.optimizers if not leaves.isdisjoint(o.state.owned()))
    return set(owners)


def _made_by(call: ModuleCall, graph: bool) -> Iterator[Node]:
    """The nodes that have computed what a call is given."""
    for _, value in call.operands:
        for tensor in tensors_in(value) if isinstance(value, Value) else ():
            if tensor.node is not None:
                yield tensor.node
        if graph or not isinstance(value, (Tensor, Unknown)):
            continue
        if isinstance(value, Tensor) and value.cut is not None:
            yield value.cut[0]
        elif value.lost is not None and isinstance(value.lost.graph, Node):
            yield value.lost.graph
