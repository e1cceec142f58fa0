"""Which optimizer a loss is meant for, and what says so."""

from __future__ import annotations

import enum
from typing import NamedTuple

from gradfix.autograd.graph import Backward, OptimizerState
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    cached_by_event,
    calls_in,
    optimizer_of_loss,
    owned_elsewhere,
)
from gradfix.rules.intent.players import fooling


class Evidence(enum.Enum):
    """What says whom a loss is for, the strongest first."""

    FOOLS = enum.auto()
    """It holds what another optimizer's network says of this one's to what that one holds real data to."""
    THAWED = enum.auto()
    """The networks of this optimizer are frozen for the other losses of the iteration, and not for this."""
    STEPS = enum.auto()
    """This optimizer is the first to step on it, or the only one that is cleared for it."""


class Purpose(NamedTuple):
    """The optimizer that a loss is meant for."""

    optimizer: OptimizerState
    evidence: Evidence


@cached_by_event
def purpose(run: Run, backward: Backward) -> Purpose | None:
    """The optimizer that a loss is meant for; None if no step uses it, and nothing else tells."""
    fools = fooling(run, backward)
    if fools is not None:
        return Purpose(fools.maker, Evidence.FOOLS)
    thawed = _thawed_for(run, backward)
    if thawed is not None:
        return Purpose(thawed, Evidence.THAWED)
    stepping = optimizer_of_loss(run, backward)
    return None if stepping is None else Purpose(stepping, Evidence.STEPS)


def meant_for(run: Run, backward: Backward) -> OptimizerState | None:
    """The optimizer that a loss is meant for, whatever says so."""
    known = purpose(run, backward)
    return None if known is None else known.optimizer


def _thawed_for(run: Run, backward: Backward) -> OptimizerState | None:
    """The only optimizer that a loss can be for: its networks were frozen for the iteration's other losses.

    Others of the iteration go through these networks without a gradient for them, to the network that feeds
    them; this one is what they are thawed for. Which optimizer steps first does not matter then.
    """
    if run.thawed.isdisjoint(backward.reached):
        return None
    through = {leaf for call in calls_in(backward.visited) for leaf in call.leaves}
    for optimizer in run.optimizers:
        own = set(optimizer.state.owned()) & run.thawed
        if own.isdisjoint(through) or not any(backward.reached.get(leaf) for leaf in own):
            continue
        foreign = owned_elsewhere(run, backward, optimizer.state)
        others = [b for b in backwards(run) if b is not backward and b.loops == backward.loops]
        passing = [b for b in others if foreign & set(b.reached) and own.isdisjoint(b.reached)]
        if any(call.leaves & own for b in passing for call in calls_in(b.visited)):
            return optimizer.state
    return None
