"""What two runs do differently, in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from gradfix.core import intent
from gradfix.verify import claims
from gradfix.verify.recording.records import (
    ParameterState,
    RecordedStep,
    Recording,
    SourceLocation,
    Values,
    plural,
)


@dataclass(frozen=True, slots=True)
class Apart:
    """Why two versions do not train alike."""

    why: str
    known: bool = True
    """Whether that is known: otherwise it could not be told whether they do."""

    @property
    def slight(self) -> bool:
        """Whether it is a difference in numbers, which may be rounding."""
        return " of its size" in self.why


def first_found(found: Iterable[Apart | None]) -> Apart | None:
    return next((apart for apart in found if apart is not None), None)


def retains(run: Recording) -> int:
    """In how many places backward calls retain their graph."""
    return len({call.place for call in run.backwards if call.retain})


def outdated(run: Recording) -> Apart | None:
    """Whether a step consumes what was computed with weights from before a step."""
    if run.ledger is None:
        return Apart("its graphs are too large to look at", known=False)
    for entry in intent.outdated(run.ledger):
        loss = run.ledger.calls[entry.call].loss
        return Apart(f"the backward call of {loss} uses weights that a step has changed since")
    return None


def keeps_needlessly(run: Recording) -> bool:
    """Whether a graph is retained in a place from which no later call ever goes through it again."""
    again = {call for one in run.backwards if one.through is not None for call in one.through.again}
    needed = {run.backwards[call].place for call in again}
    return any(call.retain and call.place not in needed for call in run.backwards)


def difference(
    one: Recording, other: Recording, seed: int, updates: bool = True, partly: bool = False
) -> Apart | None:
    """What differs between the trainings of two versions, if anything does.

    ``partly``: the recordings lack some of the steps.
    """
    if not one.optimizers:
        found = claims.by_hand(one, other)
        return Apart(found.apart, found.known) if found.apart is not None else None
    followed_all = claims.follow(one, other)
    if isinstance(followed_all, str):
        return Apart(f"{followed_all} (seed {seed})")
    settings = settings_apart(one, other)
    if settings is not None:
        return Apart(settings)
    for optimizer in one.optimizers:
        who, followed = optimizer.name, followed_all[optimizer.index]
        pairs = list(zip(one.steps_of(optimizer.index), other.steps_of(optimizer.index)))
        exact = {place for mine, _ in pairs[:1] for place, _ in enumerate(mine.parameters)}
        for turn, (mine, theirs) in enumerate(pairs[: followed.compared], start=1):
            exact &= _bit_for_bit(mine, theirs)
            place = claims.updates_apart(mine, theirs, exact=exact)
            if updates and place is not None:
                what = one.parameter(optimizer.index, place)
                return Apart(f"step {turn} of {who} updates {what} differently (seed {seed})")
            if mine.settings != theirs.settings:
                return Apart(f"step {turn} of {who} has other settings: {theirs.settings}")
            if set(mine.clips) != set(theirs.clips):
                return Apart(f"step {turn} of {who} clips gradients differently: {clips_of(theirs)}")
        counts = [len(run.steps_of(optimizer.index)) for run in (one, other)]
        used = [claims.leftover(run.steps_of(optimizer.index)) for run in (one, other)]
        if used[1] and not used[0]:
            return Apart(f"a step of {who} uses gradients that it has already used")
        if not partly and _other_count(one, other, *counts):
            return Apart(f"{who} takes {plural(counts[1], 'step')}, not {counts[0]}")
        if followed.open is not None:
            return Apart(f"the gradients of {who} cannot be compared: {followed.open}", known=False)
        if not partly and followed.compared < min(len(one.steps_of(optimizer.index)), 2):
            return _unfinished(other, who)
    if partly:
        return None
    if len(_unused(other)) > len(_unused(one)):
        return Apart(f"no step uses the gradients of the backward call at {_unused(other)[-1]}")
    return _cut_short(one, other)


def schedules_of(run: Recording, optimizer: int) -> bool:
    """Whether the settings of an optimizer change while it steps; maybe if it hardly does."""
    steps = run.steps_of(optimizer)
    return len(steps) < 3 or len({step.settings for step in steps}) > 1


def clips_of(step: RecordedStep) -> str:
    return "; ".join(step.clips) or "not at all"


def _bit_for_bit(one: RecordedStep, other: RecordedStep) -> set[int]:
    """The positions of parameters with which two steps begin at the very same value and gradient."""

    def digests(state: ParameterState) -> tuple[str, str | None]:
        return state.value.digest, None if state.gradient is None else state.gradient.digest

    pairs = enumerate(zip(one.parameters, other.parameters))
    return {place for place, (a, b) in pairs if digests(a) == digests(b)}


def _other_count(one: Recording, other: Recording, mine: int, theirs: int) -> bool:
    """Whether an optimizer takes more or fewer steps than it should.

    Where runs end by their budget, that may cut one off in the middle of an iteration.
    """
    if not {one.ending, other.ending} <= {"finished", "steps"}:
        return False
    if one.ending == other.ending == "finished":
        return mine != theirs
    cycle = max(len(list(turns)) for _, turns in itertools.groupby(step.optimizer for step in one.steps))
    more = cycle if one.ending == "steps" else 0
    fewer = cycle if other.ending == "steps" else 0
    return theirs > mine + more or theirs < mine - fewer


def _unused(run: Recording) -> list[SourceLocation]:
    """Where backward calls are whose gradients are cleared before any step consumes them."""
    used = {feed for step in run.steps for state in step.parameters for feed in state.feeds}
    last = max(used, default=-1)
    return [
        call.place for call in run.backwards if call.reached and call.index < last and call.index not in used
    ]


def _unfinished(run: Recording, who: str) -> Apart:
    return Apart(f"{who} takes too few steps to compare: it {claims.summary(run)}", known=left_by_itself(run))


def _cut_short(one: Recording, other: Recording) -> Apart | None:
    """Whether the judged version ends before it has done as much as the other."""
    # A repair may call backward more or less often for a step, and so end by another budget.
    budget = ("steps", "backwards")
    alike = other.ending == one.ending or (other.ending in budget and one.ending in budget)
    if other.ending == "finished" or (alike and len(other.steps) >= len(one.steps)):
        return None
    return Apart(f"it ends early: it {claims.summary(other)}", known=left_by_itself(other))


def left_by_itself(run: Recording) -> bool:
    """Whether a run ended by what the program did, and not by what it may use."""
    return run.ending in ("finished", "error", "died")


def settings_apart(one: Recording, other: Recording) -> str | None:
    for a, b in itertools.zip_longest(one.optimizers, other.optimizers):
        if a is None or b is None or (a.kind, a.settings) != (b.kind, b.settings):
            return "the optimizers are not those of the original"
    return None


def gradients_of(step: RecordedStep) -> dict[int, Values | None]:
    return {place: state.gradient for place, state in enumerate(step.parameters)}


def consumed_at(step: RecordedStep) -> dict[int, Values | None]:
    """What a step consumes, as it was before it was clipped."""
    return {
        place: g if g is None or step.scale in (0.0, 1.0) else g.times(1 / step.scale)
        for place, state in enumerate(step.parameters)
        for g in [state.gradient]
    }
