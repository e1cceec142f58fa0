"""What rounding makes of gradients, as runs that round otherwise show it."""

from __future__ import annotations

import math
from dataclasses import replace

from gradfix.verify.recording.records import (
    ParameterState,
    RecordedBackward,
    RecordedEvent,
    RecordedStep,
    Recording,
    Values,
)


def noisy(run: Recording, *dithered: Recording) -> Recording:
    """``run`` with what rounding makes of its gradients, as other runs show that have rounded otherwise."""
    for other in dithered:
        run = _noisier(run, other)
    return run


def _noisier(run: Recording, dithered: Recording) -> Recording:
    mates = {
        optimizer.index: list(dithered.steps_of(optimizer.index))[::-1] for optimizer in dithered.optimizers
    }
    calls = list(dithered.backwards)[::-1]

    def known(event: RecordedEvent) -> RecordedEvent:
        if isinstance(event, RecordedStep) and mates.get(event.optimizer):
            pairs = zip(event.parameters, mates[event.optimizer].pop().parameters)
            return replace(event, parameters=tuple(_doubtful(a, b) for a, b in pairs))
        if isinstance(event, RecordedBackward) and calls:
            other = calls.pop()
            noise = {
                place: max(event.noise.get(place, 0.0), _noise(share, other.shares.get(place)))
                for place, share in event.shares.items()
            }
            floor = {place: max(size, event.floor.get(place, 0.0)) for place, size in other.floor.items()}
            return replace(event, noise=noise, floor=floor)
        return event

    return replace(run, events=tuple(known(event) for event in run.events))


def _doubtful(one: ParameterState, other: ParameterState) -> ParameterState:
    """A state with what another run shows, which has rounded otherwise."""
    noise = max(one.noise, _noise(one.gradient, other.gradient))
    return replace(one, noise=noise, floor=max(one.floor, other.floor))


def _noise(one: Values | None, other: Values | None) -> float:
    """By how much two gradients differ."""
    if one is None or other is None:
        return 0.0
    apart = one.distance(other)
    scale = max(one.largest, other.largest) if one.exact is not None else max(one.norm, other.norm)
    return apart * scale if math.isfinite(apart) else 0.0
