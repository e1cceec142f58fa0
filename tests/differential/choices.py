"""Where the generator's decisions come from: a seeded generator, or hypothesis, which can shrink them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies

T = TypeVar("T")


class Source(Protocol):
    """Gives numbers."""

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``."""


class Seeded:
    """Decisions of a pseudorandom generator."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(str(seed))

    def below(self, limit: int) -> int:
        """As :meth:`Source.below`."""
        return int(self._random.random() * limit)


class Drawn:
    """Decisions of hypothesis, for whom a smaller number is a simpler program."""

    def __init__(self, draw: strategies.DrawFn) -> None:
        self._draw = draw

    def below(self, limit: int) -> int:
        """As :meth:`Source.below`."""
        return self._draw(strategies.integers(0, limit - 1))


class Choices:
    """The questions that the generator asks."""

    def __init__(self, source: Source) -> None:
        self.below = source.below

    def chance(self, percent: float) -> bool:
        """True so often; the simpler answer is no."""
        return self.below(1000) >= 1000 - round(percent * 10)

    def one(self, options: Sequence[T]) -> T:
        """One of them; the first is the simplest."""
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[float, T]]) -> T:
        """One of them, the more often the greater its weight."""
        marks = [round(weight * 10) for weight, _ in options]
        at = self.below(sum(marks))
        for mark, (_, option) in zip(marks, options):
            if at < mark:
                return option
            at -= mark
        raise AssertionError("unreachable")

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Between ``least`` and ``most`` different ones."""
        left = list(options)
        found = []
        for _ in range(min(least + self.below(most - least + 1), len(left))):
            found.append(left.pop(self.below(len(left))))
        return found
