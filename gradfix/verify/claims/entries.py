"""Whether each step consumes the entries of its own losses: as the original has them, each once, and all.

Both versions are run with updates off, the original with its graphs kept. Then a loss that is computed again
has the same value, so each backward call of the fixed program can be matched by the value of its loss,
whatever the source calls it: with the first unmatched call of the original that has this value, or with the
next few ones if it is the backward of their sum. Where nothing but
values is known of the original, since autograd refuses its graphs, nothing but values is compared.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property

from gradfix.core.codemod import Losses
from gradfix.runtime.probe import BY_HAND
from gradfix.verify.checks import NO_NUMBERS, Check
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.course import each_step
from gradfix.verify.claims.gradients import (
    RELATIVE,
    compare,
    follow_steps,
    is_zero,
    largest_of,
    leftover,
    nearly_equal,
)
from gradfix.verify.claims.losses import Given
from gradfix.verify.claims.sums import altered
from gradfix.verify.claims.verdicts import UpdatesOff
from gradfix.verify.recording.records import RecordedBackward, RecordedStep, Recording, Values, plural

SUMMED = 8
"""Calls of the original whose losses one call of the fixed program may add up, at most."""

Loss = tuple[str | None, frozenset[tuple[int, int]]]
"""A loss, within one version: what the source calls it, and the parameters that it reaches."""


def entries(case: Case, still: UpdatesOff | None) -> list[Check]:
    """Whether each step of an optimizer consumes the entries that are meant for it.

    Args:
        case: The claim, and the runs in earnest: an optimizer that consumes the same in both has them.
        still: Both versions with their weights held still; ``None`` if they cannot be run so.
    """
    open_ = sorted(unsettled(case))
    if still is None:
        # Only numbers say what a loss comes to.
        return [
            Check("entries", "not checked", f"{who}: its losses cannot be compared, {NO_NUMBERS}", who)
            for who in (case.after.optimizers[index].name for index in open_)
        ]
    versions = _Versions(still.reference, still.after, case.claim.losses)
    versions.clipping |= {index for line in case.claim.clips for index in case.constructed_at(line)}
    return [
        versions.check(index, index in case.listed)
        if index < len(still.after.optimizers)  # A run that was ended early may not have come to all.
        else Check("entries", "not checked", f"{who}: the run with updates off did not construct it", who)
        for index, who in ((index, case.after.optimizers[index].name) for index in open_)
    ]


def unsettled(case: Case) -> set[int]:
    """The optimizers that are not known to consume the same in both versions at all their steps."""
    original = case.before if case.reference is None else case.reference
    if original.crash is not None or original.uncaught is not None:
        return {step.optimizer for step in case.after.steps}
    every = frozenset(range(len(original.optimizers)))
    courses = follow_steps(original.steps, original, case.after, every, patient=True, stop_at_unlisted=False)
    return {
        step.optimizer
        for step in case.after.steps
        if (course := courses.get(step.optimizer)) is None
        or course.problem is not None
        or course.stopped is not None
        or not course.compared
    }


class _Versions:
    """Both versions with their weights held still, and which of their backward calls stand for which."""

    def __init__(self, reference: Recording, after: Recording, losses: Losses) -> None:
        self.reference = reference
        self.after = after
        self.losses = losses
        self.overall = largest_of(*(call.value for call in (*reference.backwards, *after.backwards)))
        self.blind = not any(call.shares for call in reference.backwards)
        """Whether nothing but values is known of the original."""
        self.clipping: set[int] = set()
        """The optimizers whose gradients the claim says are clipped."""
        self.displaced: set[int] = set()
        """The calls of the fixed program that differentiate at other weights than those of the original."""

    @cached_property
    def factors(self) -> dict[int, float]:
        """By call of the fixed program: by what its loss multiplies that of the call with the same number.

        Nothing, if the calls do not stand for each other, or there are several factors beside one.
        """
        pairs = list(zip(self.reference.backwards, self.after.backwards))
        if self.losses != "multiplied" or len(self.reference.backwards) != len(self.after.backwards):
            return {}
        found = {}
        for one, other in pairs:
            if one.value is None or other.value is None or not one.value.exact or not other.value.exact:
                return {}
            if one.value.largest == 0.0:
                return {}
            factor = other.value.exact[0] / one.value.exact[0]
            found[other.index] = 1.0 if math.isclose(factor, 1.0, rel_tol=RELATIVE) else factor
        others = [factor for factor in found.values() if factor != 1.0]
        alike = not others or (min(others) > 0 and max(others) - min(others) <= RELATIVE * max(others))
        return found if alike else {}

    @cached_property
    def mates(self) -> dict[int, tuple[RecordedBackward, ...]]:
        """By call of the fixed program: the calls of the original that stand for it."""
        if self.losses == "multiplied":
            return {index: (self.reference.backwards[index],) for index in self.factors}
        free = [call for call in self.reference.backwards if call.value is not None]
        found: dict[int, tuple[RecordedBackward, ...]] = {}
        known: set[str | None] = set()
        for call in self.after.backwards:
            named = [one for one in free if one.place.receiver == call.place.receiver]
            same = [one for one in (*named, *free) if self.alike(one.value, call.value)]
            mates = same[:1] or self.summands(free, call)
            if not mates and self.moved_by_hand and call.place.receiver not in known:
                # Weights were clipped between the two places at which it is computed for the first time.
                mates = named[:1]
                self.displaced |= {call.index} if mates else set()
            known.add(call.place.receiver)
            if mates:
                found[call.index] = tuple(mates)
                free = [one for one in free if one not in mates]
        return found

    @cached_property
    def moved_by_hand(self) -> bool:
        """Whether something else than steps moves weights, and in both versions the same ones."""
        one, other = _moved(self.reference), _moved(self.after)
        return bool(one) and one == other

    def summands(self, free: Sequence[RecordedBackward], call: RecordedBackward) -> list[RecordedBackward]:
        """The next calls of the original whose losses come to that of ``call``."""
        total: Values | None = None
        for count, one in enumerate(free[:SUMMED], start=1):
            assert one.value is not None
            if total is not None and total.shape != one.value.shape:
                break
            total = one.value if total is None else total.plus(one.value)
            if count > 1 and self.alike(total, call.value):
                return list(free[:count])
        return []

    def alike(self, one: Values | None, other: Values | None) -> bool:
        """Whether two losses have the same value, but for rounding."""
        return one is not None and other is not None and nearly_equal(one, other, self.overall, RELATIVE)

    def check(self, index: int, listed: bool) -> Check:
        """Whether the steps of an optimizer consume what they should, which its claim may have ``listed``."""
        who, steps = self.after.optimizers[index].name, self.after.steps_of(index)
        theirs = self.reference.steps_of(index) if index < len(self.reference.optimizers) else ()
        compared, problem = self.consumed(index, steps)
        if problem is None and leftover(steps) and not (listed and leftover(theirs)):
            problem = "a step uses gradients that an earlier one has already used"
        problem = problem or altered(self.after, steps, self.reference, theirs, clamps=index in self.clipping)
        if problem is None and self.displaced_weights(steps, theirs):
            problem = "weights are changed by something other than a step, unlike in the original"
        problem = problem or self.wasted(index, steps, theirs) or self.missed(steps[:compared], theirs)
        if problem is not None:
            return Check("entries", "not checked", f"{who}: {problem}", who)
        known = "gradients" if self.losses in ("same", "multiplied") and not self.blind else "values"
        detail = f"{each_step(len(steps))} of {who} uses each of its losses once, and none is lost"
        at = "" if compared == len(steps) else f" at {plural(compared, 'step')}"
        factor = next((one for one in self.factors.values() if one != 1.0), None)
        times = "" if factor is None else f", some multiplied by {factor:g}"
        detail += f"; with optimizer updates off, their {known} are those of the original{times}{at}"
        return Check("entries", "holds", detail, who)

    def displaced_weights(self, steps: Sequence[RecordedStep], theirs: Sequence[RecordedStep]) -> bool:
        """Whether weights are not those of the original at a step, or move though they are held still."""
        if _moved(self.after) - _moved(self.reference):
            return True
        # An optimizer may have been given what another one, or none, has in the original.
        held = {state.value.digest for step in self.reference.steps for state in step.parameters}
        return any(
            a.value.shape == b.value.shape
            and b.value.digest not in held
            and not nearly_equal(a.value, b.value, largest_of(a.value, b.value), RELATIVE)
            for one, other in zip(theirs, steps)
            if len(one.parameters) == len(other.parameters)
            for a, b in zip(one.parameters, other.parameters)
        )

    def consumed(self, index: int, steps: Sequence[RecordedStep]) -> tuple[int, str | None]:
        """At how many steps the losses that an optimizer consumes are those of the original; what is strange.

        Where the original ends early, or the claim says that losses are other ones from some step on, the
        later steps consume as many of each as the last one that was compared.
        """
        ended = self.reference.ending not in ("finished", "steps", "backwards")
        for turn, step in enumerate(steps):
            problem = next(self.strange(index, step, turn), None)
            if problem is None:
                continue
            if not turn or not (self.losses == "other" or (ended and self.exhausted)):
                return turn, f"step {turn + 1} uses {problem}"
            counts = [self.counts(one) for one in steps[turn - 1 :]]
            if any(one != counts[0] for one in counts):
                return turn, "later steps do not use as many losses as the first ones"
            return turn, None
        return len(steps), None

    @cached_property
    def exhausted(self) -> bool:
        """Whether something stands for every backward call of the original."""
        stood = {mate.index for mates in self.mates.values() for mate in mates}
        return len(stood) == len(self.reference.backwards)

    def counts(self, step: RecordedStep) -> Counter[str | None]:
        """How often a step consumes what the source calls so."""
        return Counter(self.after.backwards[f].place.receiver for f in _feeds([step]) if f != BY_HAND)

    def strange(self, index: int, step: RecordedStep, turn: int) -> Iterator[str]:
        """What a step consumes that is no loss of the original, or gives another gradient, in words."""
        for feed in sorted(_feeds([step])):
            if feed == BY_HAND:
                yield "gradients that are assigned by hand"
                continue
            call, mates = self.after.backwards[feed], self.mates.get(feed)
            if feed in self.displaced:
                continue
            if mates is None:
                yield f"{_name(call)}, whose value is that of no loss of the original"
            elif self.losses in ("same", "multiplied") and not self.blind:
                apart = self.shares_apart(mates, call, index, self.factors.get(feed, 1.0))
                if apart is not None:
                    what = self.reference.parameter(index, apart)
                    yield f"{_name(call)}, which gives another gradient of {what} than in the original"
            elif not turn and self.lacks_terms(index, mates, call):
                # Later ones may have lost what was carried over from earlier iterations.
                yield f"{_name(call)}, in which terms give no gradient that give one in the original"

    def lacks_terms(self, index: int, mates: Sequence[RecordedBackward], call: RecordedBackward) -> bool:
        """Whether fewer terms give an optimizer a gradient, or not those with a factor, than in the original.

        A factor that is cut off becomes a number: what had none has one then.
        """
        theirs, ours = self.terms(index, mates), self.terms(index, [call])
        lost = theirs - ours
        return ours.total() < theirs.total() or any(scale not in (None, 1.0, -1.0) for scale in lost)

    @staticmethod
    def terms(index: int, calls: Sequence[RecordedBackward]) -> Counter[Hashable]:
        """How many terms of what is differentiated reach parameters of an optimizer, by their factor."""
        return Counter(
            term.scale
            for call in calls
            if call.through is not None
            for term in call.through.terms
            if any(isinstance(place, tuple) and place[0] == index for place in term.reached)
        )

    def shares_apart(
        self, mates: Sequence[RecordedBackward], call: RecordedBackward, index: int, factor: float
    ) -> int | None:
        """The position of a parameter that a call gives another gradient than those that it stands for,
        multiplied by a factor."""
        theirs = functools.reduce(Given.plus, (Given.by(mate, index) for mate in mates)).times(factor)
        ours = Given.by(call, index)
        overall = largest_of(*theirs.shares.values(), *ours.shares.values())
        for place in sorted({*theirs.shares, *ours.shares}):
            a, b = theirs.shares.get(place), ours.shares.get(place)
            noise, floor = theirs.noise.get(place, 0.0), theirs.floor.get(place, 0.0)
            if not (is_zero(a) and is_zero(b)) and not nearly_equal(a, b, overall, RELATIVE, noise, floor):
                return place
        return None

    def wasted(self, index: int, steps: Sequence[RecordedStep], theirs: Sequence[RecordedStep]) -> str | None:
        """A loss of an optimizer's own whose gradients no step consumes, in words.

        Its own are those that it consumes, or consumes in the original. It is not the fix that wastes one
        where the original does, and consumes the same all through.
        """
        consumed, before = _feeds(self.after.steps), _feeds(theirs)
        own = {_loss(self.after.backwards[feed]) for feed in _feeds(steps) if feed != BY_HAND}
        for event in self.after.events[: self.after.events.index(steps[-1])]:
            if not isinstance(event, RecordedBackward) or event.index in consumed:
                continue
            stands = {mate.index for mate in self.mates.get(event.index, ())}
            if not any(owner == index for owner, _ in event.reached) or self.untouched(steps, theirs):
                continue
            if _loss(event) in own or stands & before:
                return f"no step uses the gradients of backward call {event.index + 1}, of {_name(event)}"
        return None

    def untouched(self, steps: Sequence[RecordedStep], theirs: Sequence[RecordedStep]) -> bool:
        """Whether all steps of an optimizer consume what they do in the original."""
        pairs = [compare(one, other, self.reference) for one, other in zip(theirs, steps)]
        same = all(found.problem is None and found.unknown is None for found in pairs)
        return same and len(steps) == len(theirs)

    def missed(self, steps: Sequence[RecordedStep], theirs: Sequence[RecordedStep]) -> str | None:
        """A loss of an optimizer's own that is differentiated in the original and nowhere else, in words."""
        stood = [mate for feed in _feeds(steps) for mate in self.mates.get(feed, ())]
        found = {mate.index for mates in self.mates.values() for mate in mates}
        own = {_loss(mate) for mate in stood}
        terms = {term for mate in stood for term in _terms(mate)}
        common = min(len(steps), len(theirs))
        last = self.reference.events.index(theirs[common - 1]) if common else 0
        for event in self.reference.events[:last]:
            if isinstance(event, RecordedBackward) and event.index not in found and _loss(event) in own:
                # What is differentiated twice there is one loss.
                if not _terms(event) or not _terms(event) <= terms:
                    call = f"backward call {event.index + 1}, of {_name(event)}"
                    return f"nothing replaces the original's {call}"
        return None


def _feeds(steps: Sequence[RecordedStep]) -> set[int]:
    return {feed for step in steps for state in step.parameters for feed in state.feeds}


def _moved(run: Recording) -> set[tuple[int, int]]:
    """The parameters, by optimizer and position, that hold other values at some step than at the first one,
    though the weights are held still."""
    found = set()
    for optimizer in run.optimizers:
        for one, other in itertools.pairwise(run.steps_of(optimizer.index)):
            pairs = enumerate(zip(one.parameters, other.parameters))
            found |= {(optimizer.index, n) for n, (a, b) in pairs if a.value.digest != b.value.digest}
    return found


def _terms(call: RecordedBackward) -> set[int]:
    return set() if call.through is None else {term.number for term in call.through.terms}


def _loss(call: RecordedBackward) -> Loss:
    return call.place.receiver, call.reached


def _name(call: RecordedBackward) -> str:
    return call.place.receiver or f"the loss of {call.place}"
