"""What the model of autograd says of a program, in the words of :mod:`outcome`."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

from outcome import FILE, Called, Guess, Prediction

from gradfix.autograd import operators
from gradfix.autograd.graph import Backward, Event, InPlaceChange, Step
from gradfix.autograd.program import analyze
from gradfix.autograd.run import Run


def predict(source: str, *, exact: bool = True) -> Prediction:
    """Ask the model.

    Where loops are ``exact``, its main run is compared event by event. Else an error counts as
    predicted where it comes whichever way undecided conditions go.
    """
    program = analyze(ast.parse(source), source, Path(FILE))
    if not program.entry_points or program.entry_points[0].node is not program.tree:
        why = "; ".join(program.messages) or "nothing is differentiated"
        return Prediction((), None, frozenset(), frozenset(), frozenset(), why)
    entry = program.entry_points[0]
    prediction = _of_run(entry.runs[0])
    why = "; ".join(program.messages)
    if len(entry.runs) == 1 and (exact or not entry.pending):
        return replace(prediction, open=why)
    if exact:
        return replace(prediction, open=why or "undecided conditions")
    sure = {_error(e) for e in entry.certain_observations(_first_error, lambda e: e.site, raises=True)}
    possible = {error for run in entry.all_runs() for error in _first_error(run)}
    error = prediction.error if prediction.error in sure else min(sure, default=None, key=str)
    ways = [prediction, *map(_of_run, entry.all_runs())]
    return replace(
        prediction,
        error=error,
        open=why,
        possible=frozenset(possible),
        doubts=frozenset().union(*(way.doubts for way in ways)),
        fragile=frozenset().union(*(way.fragile for way in ways)),
        changes=frozenset().union(*(way.changes for way in ways)),
    )


def _error(event: Event) -> tuple[str, int] | None:
    line = getattr(event.site, "lineno", 0)
    if isinstance(event, (Backward, InPlaceChange)) and event.failure is not None:
        return event.failure.kind, line
    return None


def _first_error(run: Run) -> dict[tuple[str, int], Event]:
    for event in run.events:
        error = _error(event)
        if error is not None:
            return {error: event}
    return {}


def _of_run(run: Run) -> Prediction:
    events: list[Called | Guess] = []
    numbers: dict[Backward, int] = {}
    doubts: set[int] = set()
    fragile: set[int] = set()
    changes: set[int] = set()
    error = None
    for event in run.events:
        line = getattr(event.site, "lineno", 0)
        if isinstance(event, Backward):
            numbers[event] = len(events)
            if event.failure is None and _uncertain(event):
                doubts.add(len(events))
            if _fragile(event):
                fragile.add(len(events))
            events.append(Called(line))
        elif isinstance(event, Step):
            events.append(_guess(event, numbers))
        elif isinstance(event, InPlaceChange) and event.doubtful:
            changes.add(len(events))
        error = _error(event)
        if error is not None:
            break
    return Prediction(tuple(events), error, frozenset(doubts), frozenset(fragile), frozenset(changes))


def _uncertain(event: Backward) -> bool:
    """Whether what the backward reached is uncertain."""
    certain = event.certain and all(event.visited.values()) and all(event.reached.values())
    # What leads to no leaf at all, not even to a frozen one, may not require grad.
    return not certain or not (event.reached or any(node.leaves for node in event.visited))


def _fragile(event: Backward) -> bool:
    """Whether it may raise for all that the model knows."""
    return any(
        node.maybe_freed
        or (node.raises_when_freed is None and node.freed_by is not None)
        or any(storage.maybe for storage, _, _ in node.saved)
        or _may_save_more(node.op)
        for node in event.visited
    )


@cache
def _may_save_more(op: str) -> bool:
    """Whether an operation saves some of its operands only in some of the ways to call it."""
    row = operators.module(f"torch.{op}") or operators.method(op) or operators.function(f"torch.{op}")
    row = row or operators.function(f"torch.nn.functional.{op}")
    return row is not None and row.saved != row.possible


def _guess(event: Step, numbers: dict[Backward, int]) -> Guess:
    sure: list[frozenset[tuple[int, int]] | None] = []
    most: list[frozenset[tuple[int, int]] | None] = []
    for leaf in dict.fromkeys(event.optimizer.owned()):
        if leaf not in event.consumed:
            sure.append(None)
            most.append(None)
            continue
        parts = [(numbers[b], len(steps), certain) for b, (certain, steps) in event.consumed[leaf].items()]
        certain = frozenset((n, k) for n, k, known in parts if known)
        sure.append(certain if certain or not parts else None)
        most.append(frozenset((n, k) for n, k, _ in parts))
    created = getattr(event.optimizer.created, "lineno", 0)
    doubtful = event.doubtful or not event.optimizer.groups_known
    return Guess(getattr(event.site, "lineno", 0), created, tuple(sure), tuple(most), doubtful)


__all__ = ["predict"]
