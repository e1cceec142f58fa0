"""Training steps, and how far the model has followed each: where it has not, silence says nothing."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple


class Status(enum.StrEnum):
    """How far a training step was followed."""

    FOLLOWED = "followed"
    """What it differentiates is known, with the parameters that it reaches and the optimizers that step."""
    ASSUMED = "followed under an assumption"
    """The same, if what the code does not show is as the assumption says."""
    UNDECIDED = "not decided"
    """It was followed, and something in it may be a mistake or not, by what the code does not show."""
    NOT_FOLLOWED = "not followed"
    """Nothing can be found in it."""


class TrainingStep(NamedTuple):
    """A function, or an outermost loop outside of functions, that differentiates or steps an optimizer.

    So is a script that does so outside of loops, and a method whose loss a framework differentiates. What
    is defined within another training step is a part of it, as the closure that ``step`` is given.
    """

    line: int
    """Of the call that differentiates or steps: the first one, or the first that was not followed."""
    kind: Literal["function", "loop", "script"]
    name: str
    status: Status
    assumption: str = ""
    """What is taken for granted, or of what is not decided, what would decide it."""
    reason: str = ""
    """Why it was not followed."""
    advice: str = ""
    """What a person can do about that."""


class Coverage(NamedTuple):
    """How many training steps were followed, and how many were not."""

    followed: int = 0
    assumed: int = 0
    undecided: int = 0
    not_followed: int = 0

    @classmethod
    def of(cls, steps: Iterable[TrainingStep]) -> Coverage:
        """Count ``steps`` by their status."""
        counted = Counter(step.status for step in steps)
        return cls(*(counted[status] for status in Status))

    @property
    def total(self) -> int:
        """How many training steps there are."""
        return sum(self)

    @property
    def covered(self) -> int:
        """How many were followed, under an assumption or without one."""
        return self.followed + self.assumed

    @property
    def percent(self) -> int:
        """The share that was followed, rounded down; all of it where there is no training step."""
        return 100 if not self.total else 100 * self.covered // self.total

    def __str__(self) -> str:
        if not self.total:
            return "there are no training steps"
        noun = "training step" if self.total == 1 else "training steps"
        parts = [f"followed {self.covered} of {self.total} {noun}"]
        parts += [f"{self.assumed} under an assumption"] if self.assumed else []
        parts += [f"{self.undecided} not decided"] if self.undecided else []
        return ", ".join(parts)
