"""Which optimizer of a run is which of another one, and which of its parameters is which."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradfix.verify.recording.records import (
    RecordedAdjustment,
    RecordedBackward,
    RecordedClearing,
    RecordedEvent,
    RecordedStep,
    Recording,
)

Parameter = tuple[int, int]
"""Its optimizer, and its position there."""


def turn_of(run: Recording, like: Recording) -> list[int] | None:
    """By optimizer of ``run``: its number in ``like``, where that is another order, and can be told.

    They are told by their settings, and by the parameters that they own: their names, or else their shapes.
    """

    def named(recording: Recording) -> list[Any]:
        return [(one.kind, one.settings, one.parameters) for one in recording.optimizers]

    def shaped(recording: Recording) -> list[Any]:
        return [(one.kind, one.settings, one.shapes) for one in recording.optimizers]

    for known in (named, shaped):
        mine, wanted = known(run), known(like)
        if len(set(mine)) == len(mine) and set(mine) == set(wanted):
            return None if mine == wanted else [wanted.index(one) for one in mine]
    return None


def in_order(run: Recording, turn: Sequence[int]) -> Recording:
    """``run`` with other numbers for its optimizers."""
    renumbered = _renamed(run, lambda one: (turn[one[0]], one[1]), lambda index: turn[index])
    optimizers = sorted(
        (replace(one, index=turn[one.index]) for one in renumbered.optimizers), key=lambda one: one.index
    )
    weights = [run.weights[turn.index(place)] for place in range(len(turn))] if run.weights else ()
    return replace(renumbered, optimizers=tuple(optimizers), weights=tuple(weights))


def owned_in(run: Recording, optimizer: int) -> int:
    """How many parameters an optimizer owns when it first steps, or where it is made if it never does."""
    steps = run.steps_of(optimizer)
    return len(steps[0].parameters if steps else run.optimizers[optimizer].shapes)


def idle_in(run: Recording) -> frozenset[Parameter]:
    """The parameters that never get a gradient in a run, of optimizers that step in it."""
    owned = {(step.optimizer, at) for step in run.steps for at, _ in enumerate(step.parameters)}
    given = {
        (step.optimizer, at)
        for step in run.steps
        for at, state in enumerate(step.parameters)
        if state.gradient is not None
    }
    return frozenset(owned - given)


def without(run: Recording, idle: Collection[Parameter]) -> Recording:
    """``run`` as if its optimizers did not own some parameters, which nothing ever gives a gradient."""
    if not idle:
        return run

    def left(optimizer: int, values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(value for at, value in enumerate(values) if (optimizer, at) not in idle)

    def name(parameter: Parameter) -> Parameter | None:
        index, place = parameter
        if parameter in idle:
            return None
        return index, place - sum(index == other and at < place for other, at in idle)

    renamed = _renamed(run, name, lambda index: index)
    events = tuple(
        replace(
            event,
            parameters=left(event.optimizer, event.parameters),
            after=None if event.after is None else left(event.optimizer, event.after),
        )
        if isinstance(event, RecordedStep)
        else event
        for event in renamed.events
    )
    optimizers = tuple(
        replace(
            one,
            parameters=left(one.index, one.parameters),
            shapes=left(one.index, one.shapes),
            tensors=left(one.index, one.tensors),
        )
        for one in run.optimizers
    )
    weights = tuple(left(index, values) for index, values in enumerate(run.weights))
    return replace(renamed, events=events, optimizers=optimizers, weights=weights)


def _renamed(
    run: Recording, name: Callable[[Parameter], Parameter | None], number: Callable[[int], int]
) -> Recording:
    """``run`` with other names for the parameters in its events (``None``: it is left out), and other numbers
    for the optimizers in them."""

    def mapped(named: Mapping[Any, Any]) -> dict[Any, Any]:
        return {new: value for one, value in named.items() if (new := name(one)) is not None}

    def names(parameter: Any) -> tuple[Parameter, ...]:
        new = name(parameter)
        return () if new is None else (new,)

    def moved(event: RecordedEvent) -> RecordedEvent:
        if isinstance(event, (RecordedStep, RecordedAdjustment)):
            return replace(event, optimizer=number(event.optimizer))
        if isinstance(event, RecordedClearing):
            return replace(event, dropped=mapped(event.dropped))
        if isinstance(event, RecordedBackward):
            through = event.through and event.through.renamed(names)
            reached = frozenset(new for one in event.reached for new in names(one))
            return replace(event, reached=reached, shares=mapped(event.shares), through=through)
        return event

    return replace(run, events=tuple(moved(event) for event in run.events))
