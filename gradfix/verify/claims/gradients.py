"""Whether two runs consume the same gradients, step for step, but for rounding."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gradfix.runtime.probe import BY_HAND
from gradfix.verify.checks import NO_NUMBERS
from gradfix.verify.recording.records import RecordedStep, Recording, Values, plural

RELATIVE = 1e-5
ABSOLUTE = 1e-7
GROWTH = 100.0
GROWN = 1e-3
NOISE = 10.0
"""Two versions may differ in a gradient by this many times the effect of the smallest change of all weights:
for one of size 1e-6 that is computed from numbers of size 1, that is a good part of it."""
ROUNDED = 0.25
"""The most by which two gradients may differ for that reason, relative to the larger one."""
MOVED = 0.1
"""How far two updates of a tensor may be apart, relative to the longer one: they are small differences of
large numbers, and optimizers such as Adam give rounding in small gradients the size of large ones."""
EXACT = 1e-4
"""The same, beside rounding, where an optimizer has been given the very same gradients."""


@dataclass
class Course:
    """How far one optimizer's steps were followed, and what came of it."""

    compared: int = 0
    largest: float = 0.0
    """The largest relative difference of gradients that were found equal."""
    problem: str | None = None
    stopped: str | None = None
    """Why later steps were not compared."""
    declared: bool = False
    """Whether they were not compared because the claim says that they differ."""
    hashed: int = 0
    """Gradients that were proved equal by their hashes."""
    measured: int = 0
    """Gradients that were found equal by their numbers."""
    nothing: int = 0
    """Those among them that are zero but for rounding in both."""


@dataclass
class _Comparison:
    """Two steps, gradient by gradient."""

    problem: str | None = None
    """What differs."""
    unknown: str | None = None
    """A gradient that cannot be compared: the hashes differ and there are no numbers."""
    largest: float = 0.0
    """The largest relative difference of gradients that agree."""
    drift: float = 0.0
    """The largest relative difference of the weights."""
    hashed: int = 0
    measured: int = 0
    nothing: int = 0


def is_rounding(one: Values | None, other: Values | None, floor: float, noise: float = 0.0) -> bool:
    """Whether two gradients are nothing but rounding.

    Either both are no larger than what rounding may leave of a sum that is zero (a bias before a
    normalization, a shift before softmax), or what rounding makes of them is of their own size.
    """
    if one is None or other is None:
        return False
    return max(one.largest, other.largest) <= floor or 0 < _scale(one, other) <= NOISE * noise


def nearly_equal(
    one: Values | None,
    other: Values | None,
    overall: float,
    relative: float,
    noise: float = 0.0,
    floor: float = 0.0,
) -> bool:
    """Whether two gradients are equal within the tolerance.

    Args:
        one: A gradient.
        other: Another one.
        overall: The largest magnitude of all that the optimizer has been given.
        relative: How far they may be apart, relative to the larger one.
        noise: By how much rounding alone may change an element of one of them.
        floor: What rounding may leave of an element whose terms add up to zero.
    """
    if one is None or other is None:
        return one is other
    if is_rounding(one, other, floor):
        return True
    apart, scale = one.distance(other), _scale(one, other)
    rounding = NOISE * noise if NOISE * noise >= scale else min(NOISE * noise, ROUNDED * scale)
    return apart == 0 or apart * scale <= relative * scale + ABSOLUTE * overall + rounding


def _scale(one: Values, other: Values) -> float:
    """What the distance of two tensors is relative to."""
    return max(one.largest, other.largest) if one.exact is not None else max(one.norm, other.norm)


def is_zero(values: Values | None) -> bool:
    """Whether a gradient is not there, or zero."""
    return values is None or values.zero


def largest_of(*values: Values | None) -> float:
    """The largest magnitude among the elements of all of them."""
    return max((value.largest for value in values if value is not None), default=0.0)


def _same_hash(one: str | None, other: str | None) -> bool:
    return one is not None and one == other


def compare(one: RecordedStep, other: RecordedStep, name: Recording) -> _Comparison:
    """Compare two steps up to the first gradient that differs."""
    if len(one.parameters) != len(other.parameters):
        return _Comparison("it has other parameters")
    pairs = list(zip(one.parameters, other.parameters))
    overall = max((largest_of(a.gradient, b.gradient) for a, b in pairs), default=0.0)
    # What is moved by nothing but rounding moves nothing else.
    drifts = (
        0.0 if _same_hash(a.value_hash, b.value_hash) else a.value.distance(b.value)
        for a, b in pairs
        if a.value.numeric and b.value.numeric
        if not is_rounding(a.gradient, b.gradient, max(a.floor, b.floor), max(a.noise, b.noise))
    )
    found = _Comparison(drift=max(drifts, default=0.0))
    what = ""
    relative = max(RELATIVE, min(GROWTH * found.drift, GROWN))
    for position, (a, b) in enumerate(pairs):
        what = name.parameter(one.optimizer, position)
        if a.gradient is None or b.gradient is None:
            if a.gradient is not b.gradient:
                without = "the fixed program" if b.gradient is None else "the original"
                return replace(found, problem=f"{what} has no gradient in {without}")
        elif _same_hash(a.gradient_hash, b.gradient_hash):
            found.hashed += 1
        elif not (a.gradient.numeric and b.gradient.numeric):
            found.unknown = f"the gradient of {what} has another hash, {NO_NUMBERS}"
        else:
            noise, floor = max(a.noise, b.noise), max(a.floor, b.floor, ABSOLUTE * overall)
            apart = a.gradient.distance(b.gradient)
            if is_rounding(a.gradient, b.gradient, floor, noise) and math.isfinite(apart):
                found.nothing += 1
                continue
            if not nearly_equal(a.gradient, b.gradient, overall, relative, noise):
                problem = f"the gradient of {what} differs by {apart:.1e} of its size"
                if not apart * _scale(a.gradient, b.gradient) <= NOISE * noise:
                    return replace(found, problem=problem)
                found.unknown = f"{problem}, and by {noise:.1e} by rounding alone"
                continue
            found.largest = max(found.largest, apart)
            found.measured += 1
    if found.nothing and not found.hashed and not found.measured:
        found.unknown = found.unknown or f"the gradient of {what} is only rounding error"
    return found


def _finite(step: RecordedStep) -> bool:
    return all(state.gradient is None or state.gradient.finite for state in step.parameters)


def follow_steps(
    steps: Iterable[RecordedStep],
    one: Recording,
    other: Recording,
    listed: frozenset[int],
    *,
    patient: bool,
    stop_at_unlisted: bool,
) -> dict[int, Course]:
    """Compare the ``steps`` of ``one`` with those of ``other``, each optimizer's k-th with its k-th.

    Unlisted optimizers are only watched: once one consumes something different (with
    ``stop_at_unlisted``: once one steps at all) the weights may differ, and the comparison ends.
    If ``patient``, a difference counts as unknown, not as wrong, where the runs have drawn different random
    numbers.
    """
    courses = {index: Course() for index in listed}
    taken: Counter[int] = Counter()
    exact = True
    for step in steps:
        index, turn = step.optimizer, taken[step.optimizer]
        taken[index] += 1
        mates = other.steps_of(index)
        mate = mates[turn] if turn < len(mates) else None
        if index not in listed:
            name = one.optimizers[index].name
            if stop_at_unlisted:
                return _stopped(courses, f"{name} steps, whose gradients the fix changes", declared=True)
            known = None if mate is None else compare(step, mate, one)
            if known is None or known.problem is not None or known.unknown is not None:
                why = f"{name} uses other gradients from here on, as the fix intends"
                return _stopped(courses, why, declared=True)
            continue
        course = courses[index]
        if mate is None:
            if other.ending == "finished":
                course.problem = f"{plural(len(mates), 'step')} in the fixed program, more in the original"
            else:
                course.stopped = "the fixed program's run ended"
            continue
        if not _finite(step) and not _same_digests(step, mate):
            return _stopped(courses, "the original's gradients are not finite")
        found = compare(step, mate, one)
        problem, largest, drift = found.problem, found.largest, found.drift
        if problem is None and found.unknown is not None:
            return _stopped(courses, found.unknown)
        if problem is None and exact and drift > GROWN:
            problem = f"the weights differ by {drift:.1e} of their size although all gradients were equal"
        if problem is None and drift > GROWN:
            return _stopped(courses, f"the weights differ by {drift:.1e} of their size, by rounding")
        if problem is not None:
            if patient and step.random != mate.random:
                return _stopped(courses, "the two versions have drawn different random numbers")
            course.problem = f"at step {turn + 1}, {problem}"
            return _stopped(courses, f"{one.optimizers[index].name} differs from here")
        exact = exact and largest == 0
        course.compared += 1
        course.largest = max(course.largest, largest)
        course.hashed += found.hashed
        course.measured += found.measured
        course.nothing += found.nothing
    return courses


def _same_digests(one: RecordedStep, other: RecordedStep) -> bool:
    def digests(step: RecordedStep) -> list[str | None]:
        return [state.gradient.digest if state.gradient else None for state in step.parameters]

    return digests(one) == digests(other)


def _stopped(courses: dict[int, Course], why: str, *, declared: bool = False) -> dict[int, Course]:
    for course in courses.values():
        if course.stopped is None:
            course.stopped, course.declared = why, declared
    return courses


def leaves_apart(one: Mapping[str, Values | None], other: Mapping[str, Values | None]) -> str | None:
    """The first leaf whose gradients differ, in words; ``None`` if all are equal."""
    overall = largest_of(*one.values(), *other.values())
    for name in [*one, *(name for name in other if name not in one)]:
        a, b = one.get(name), other.get(name)
        if nearly_equal(a, b, overall, RELATIVE):
            continue
        if a is None or b is None:
            return f"{name} has no gradient in {'the original' if a is None else 'the fixed program'}"
        return f"the gradient of {name} differs by {a.distance(b):.1e} of its size"
    return None


def same_course(one: Recording, other: Recording) -> bool:
    """Whether two runs of the same program did the same."""
    everything = frozenset(range(len(one.optimizers)))
    courses = follow_steps(one.steps, one, other, everything, patient=True, stop_at_unlisted=False)
    if any(course.problem for course in courses.values()):
        return False
    return all(leaves_apart(a.leaves, b.leaves) is None for a, b in zip(one.backwards, other.backwards))


@dataclass(frozen=True, slots=True)
class Followed:
    """How far an optimizer was found to consume equal gradients in two versions."""

    compared: int
    """At how many steps."""
    open: str | None
    """Why that is not known of its other steps, if both versions did take more."""


def follow(one: Recording, other: Recording) -> dict[int, Followed] | str:
    """By optimizer, how far two versions consume equal gradients; or what differs, in words.

    Optimizers are told by the order of their construction. Where the versions have drawn different
    random numbers the comparison ends without a difference.
    """
    if len(one.optimizers) != len(other.optimizers):
        return f"it makes {plural(len(other.optimizers), 'optimizer')}, not {len(one.optimizers)}"
    everything = frozenset(range(len(one.optimizers)))
    courses = follow_steps(one.steps, one, other, everything, patient=True, stop_at_unlisted=False)
    for index, course in courses.items():
        who = one.optimizers[index].name
        if course.problem is not None:
            return f"gradients of {who} differ: {course.problem}"
        more = len(other.steps_of(index)) - len(one.steps_of(index))
        if one.ending == other.ending == "finished" and more > 0:
            return f"{who} takes {plural(more, 'step')} more"
    found = {}
    for index, course in courses.items():
        common = min(len(one.steps_of(index)), len(other.steps_of(index)))
        found[index] = Followed(course.compared, course.stopped if course.compared < common else None)
    return found


def updates_apart(one: RecordedStep, other: RecordedStep, *, exact: Collection[int] = ()) -> int | None:
    """The position of a parameter that two steps move differently, though their gradients are equal.

    Updates that were not recorded are not known to differ. Nor are those by a gradient that is only rounding:
    some optimizers ignore its size. Where all that an optimizer has
    been given for a parameter is equal bit for bit, at the positions ``exact``, what it makes of it must be
    equal but for rounding.
    """
    if one.after is None or other.after is None:
        return None
    overall = largest_of(*(state.gradient for step in (one, other) for state in step.parameters))
    for place, (mine, theirs) in enumerate(zip(one.parameters, other.parameters)):
        gradients = [state.gradient for state in (mine, theirs) if state.gradient is not None]
        if place not in exact and any(NOISE * mine.noise > RELATIVE * one.largest for one in gradients):
            continue
        if place not in exact and is_rounding(mine.gradient, theirs.gradient, max(mine.floor, theirs.floor)):
            continue
        if place not in exact and all(gradient.largest <= RELATIVE * overall for gradient in gradients):
            continue
        a = one.after[place].minus(mine.value)
        b = other.after[place].minus(theirs.value)
        apart, length = math.dist(a, b), max(math.hypot(*a), math.hypot(*b))
        if place in exact and mine.value.exact is not None:
            rounding = 4 * mine.value.norm * (2**-8 if "16" in mine.value.dtype else 2**-24)
            if apart > EXACT * length + rounding:
                return place
        elif not apart <= MOVED * length:
            return place
    return None


def same_gradients(one: Mapping[int, Values], other: Mapping[int, Values | None]) -> bool:
    """Whether two sets of gradients, by position, are equal; a missing one may be zero."""
    overall = largest_of(*one.values(), *other.values())
    return all(
        nearly_equal(one.get(place), other.get(place), overall, RELATIVE)
        or (is_zero(one.get(place)) and is_zero(other.get(place)))
        for place in {*one, *other}
    )


def leftover(steps: Sequence[RecordedStep]) -> bool:
    """Whether a step consumes a backward call's gradient that an earlier step consumed."""
    for earlier, later in itertools.pairwise(steps):
        for old, new in zip(earlier.parameters, later.parameters):
            if {*old.feeds} & {*new.feeds} - {BY_HAND}:
                return True
    return False


def agreement(course: Course) -> str:
    """How well gradients agree, in words."""
    apart = "max difference 0" if course.largest == 0 else f"max relative difference {course.largest:.1e}"
    if course.nothing:
        apart += f", {plural(course.nothing, 'gradient')} zero up to rounding in both"
    if not course.hashed:
        return apart
    if not course.measured:
        return f"{apart}, {_all(course.hashed)} proved by hash"
    every = course.hashed + course.measured
    return f"{apart}, {course.hashed} of {every} gradients proved by hash, {course.measured} by numbers"


def _all(count: int) -> str:
    return "the 1 gradient" if count == 1 else f"all {count} gradients"
