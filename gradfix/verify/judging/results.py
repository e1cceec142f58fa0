"""What is judged, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from gradfix.core.codemod import Claim

Judged = Literal["accepted", "refuted", "not run"]


@dataclass(frozen=True, slots=True)
class Repair:
    """The original after fixes of gradfix's own."""

    text: str
    fixed: frozenset[int]
    """The mistakes of the original, by number, that are gone in it."""
    how: str
    """The fixes, in words."""
    choice: bool = False
    """Whether one of them is a choice, which is no measure for others."""
    ruled: bool = False
    """Whether it is no rewrite: the original itself, whose runs are made to give each loss once to those that
    it is for (see :func:`gradfix.core.intent.corrections`)."""
    held: bool = False
    """Whether it is right only while the weights are held still."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in the original that a repair has to mend."""

    claim: Claim
    carried: bool
    """Whether it is about state that is carried over iterations, so that there is a sum over time."""
    for_later: bool = False
    """Whether iterations compute that state for later ones alone."""
    still_there: str | None = None
    """What the model says of the mistake in the repaired version, if it is still there."""
    entries: bool = False
    """Whether it is only about which loss is given to whom, and how often."""
    kept: bool = False
    """Whether steps consume what is right, while the weights are held still, where no graph is freed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mistake."""

    outcome: Judged
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on each mistake, and the runs that it rests on."""

    verdicts: tuple[Verdict, ...]
    runs: tuple[tuple[str, str], ...] = ()
    """``(version, what it did)`` on the first seed."""
    python: str = ""
    interpreter: str = ""
    torch: str = ""
    seeds: tuple[int, ...] = ()
    seconds: float = 0.0
    sandbox: str = ""
    """What kept the runs from doing harm."""
    passed_over: tuple[str, ...] = ()
    """Interpreters that would have come first, each with the reason why it did not."""

    def reworded(self, before: Callable[[str], str], after: Callable[[str], str]) -> Judgement:
        """The same with lines named otherwise: as ``after`` does where they are of the repair."""
        return replace(
            self,
            verdicts=tuple(replace(one, reason=before(one.reason)) for one in self.verdicts),
            runs=tuple(
                (version, (after if version.startswith("after") else before)(what))
                for version, what in self.runs
            ),
        )
