"""Iterations of two versions that step the same optimizers, maybe in another order.

An iteration ends where the optimizers of both versions have stepped equally often, and each of them at least
once since the iteration before, if it goes on to step at all. Within an iteration the order is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradfix.verify.recording.records import RecordedStep, Recording

Counts = tuple[int, ...]
"""By optimizer: how many steps it has taken."""


@dataclass(frozen=True, slots=True)
class CommonIterations:
    """Where the iterations of two versions end."""

    ends: tuple[Counts, ...]

    def later(self) -> CommonIterations:
        """The same, but the first two iterations are taken for one, so that moving ones rest and the
        reverse."""
        return CommonIterations(self.ends[1:])

    def moving(self) -> tuple[Counts, ...]:
        """By optimizer: the numbers of its last steps in every other iteration, the first one among them."""
        turns = self.ends[::2]
        return tuple(tuple(end[index] for end in turns) for index in range(len(turns[0]) if turns else 0))

    def rests(self, optimizer: int, number: int) -> bool:
        """Whether an optimizer takes the step of this number in one of the other iterations."""
        pairs = zip(self.ends[::2], self.ends[1::2])
        return any(start[optimizer] < number <= end[optimizer] for start, end in pairs)

    def resting(self, run: Recording) -> Recording:
        """``run`` with the steps of the other iterations only."""
        taken: Counter[int] = Counter()

        def stays(event: object) -> bool:
            if not isinstance(event, RecordedStep):
                return True
            number = taken[event.optimizer] + 1
            # What has no end is an evaluation within a step that follows.
            taken[event.optimizer] += event.after is not None
            return self.rests(event.optimizer, number)

        return replace(run, events=tuple(event for event in run.events if stays(event)))


def common(one: Recording, other: Recording) -> CommonIterations:
    """The iterations of two runs that recorded what each step makes of the weights."""
    mine, theirs = _counts(one), set(_counts(other))
    last = mine[-1] if mine else ()
    ends: list[Counts] = []
    for counts in mine:
        begun = ends[-1] if ends else (0,) * len(counts)
        waited = [index for index, total in enumerate(last) if total > begun[index]]
        if counts in theirs and all(counts[index] > begun[index] for index in waited):
            ends.append(counts)
    return CommonIterations(tuple(ends))


def _counts(run: Recording) -> Sequence[Counts]:
    """How many steps each optimizer has taken, after each step."""
    taken = [0] * len(run.optimizers)
    found: list[Counts] = []
    for step in run.steps:
        if step.after is not None:
            taken[step.optimizer] += 1
            found.append(tuple(taken))
    return found
