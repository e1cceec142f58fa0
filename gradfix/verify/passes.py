"""Passes of two versions that step the same optimizers, maybe in another order.

A pass ends where the optimizers of both versions have stepped equally often, and each of them at least once
since the pass before, if it goes on to step at all. Within a pass the order is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradfix.verify.recording import Recording, Step

Counts = tuple[int, ...]
"""By optimizer: how many steps it has taken."""


@dataclass(frozen=True, slots=True)
class Passes:
    """Where the passes of two versions end."""

    ends: tuple[Counts, ...]
    """How many steps have been taken when each pass ends."""

    def by_optimizer(self) -> tuple[Counts, ...]:
        """By optimizer: how many steps it has taken at the end of each pass."""
        return tuple(zip(*self.ends))

    def after_first(self, run: Recording) -> Recording:
        """``run`` with the steps after the first pass only."""
        taken: Counter[int] = Counter()

        def stays(event: object) -> bool:
            if not isinstance(event, Step):
                return True
            number = taken[event.optimizer] + 1
            # What has no end is an evaluation within a step that follows.
            taken[event.optimizer] += event.after is not None
            return bool(self.ends) and number > self.ends[0][event.optimizer]

        return replace(run, events=tuple(event for event in run.events if stays(event)))


def common(one: Recording, other: Recording) -> Passes:
    """The passes of two runs that recorded what each step makes of the weights."""
    mine, theirs = _counts(one), set(_counts(other))
    last = mine[-1] if mine else ()
    ends: list[Counts] = []
    for counts in mine:
        begun = ends[-1] if ends else (0,) * len(counts)
        waited = [index for index, total in enumerate(last) if total > begun[index]]
        if counts in theirs and all(counts[index] > begun[index] for index in waited):
            ends.append(counts)
    return Passes(tuple(ends))


def _counts(run: Recording) -> Sequence[Counts]:
    """How many steps each optimizer has taken, after each step."""
    taken = [0] * len(run.optimizers)
    found: list[Counts] = []
    for step in run.steps:
        if step.after is not None:
            taken[step.optimizer] += 1
            found.append(tuple(taken))
    return found
