"""What versions of a program keep beside the weights that optimizers own: averages, targets, statistics.

No gradient tells whether the average of weights that a program saves is still taken, or running statistics
are still gathered. Where networks are trained in another order, such state may rightly hold other values;
but what is kept up in one version has to be kept up in the other.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from gradfix.verify.recording.records import RecordedStep, Recording, Values

MOVED = 0.1
"""How far apart two courses of a tensor may be, relative to the longer way that it has gone."""
ROUNDING = 1e-6
"""What a tensor has gone for certain, relative to its size: less may be rounding in single precision."""


def kept_apart(one: Recording, other: Recording, *, in_earnest: bool) -> str | None:
    """What the first version keeps beside the weights and the other does not, or the reverse, in words.

    ``in_earnest``: both have the same weights all along, so what no optimizer owns takes the same course.
    """
    name = _set_apart(one, other)
    if name is not None:
        return f"{_spoken(name)} has other settings"
    for of in (_others, _buffers):
        mine, theirs = of(one), of(other)
        # Either may end just before what the other has done once. What is kept may go by another name.
        lost = _moving(mine.values(), twice=True) - _moving(theirs.values())
        for name, course in mine.items():
            if len(course) > 2 and course[0].shape in lost and _goes(course):
                return f"{_spoken(name)} does not change in the fixed program"
        # Something that the original has not may be kept, too.
        for name, course in theirs.items():
            if len(course) > 2 and len(mine.get(name, ())) == 1 and _goes(course):
                return f"{_spoken(name)} does not change in the original"
    others = _others(other)
    renamed = _by_beginning(others)
    for name, course in _others(one).items() if in_earnest else ():
        mate = others.get(name) or renamed.get(course[0].digest)
        if mate is None:
            continue
        stops = len(one.steps) == len(other.steps) and abs(len(course) - len(mate)) > 1
        if stops or not _same_course(course, mate):
            return f"{_spoken(name)} ends up different"
    return None


def counted_apart(one: Recording, other: Recording) -> str | None:
    """A network whose normalization has seen more batches, or fewer, at some step of another version."""
    for mine, theirs in zip(one.steps, other.steps):
        for name in mine.buffers.keys() & theirs.buffers.keys():
            value = mine.buffers[name]
            if "int" in value.dtype and not value.shape and value.digest != theirs.buffers[name].digest:
                return f"{_spoken(name)} counts other batches: they are normalized in another mode"
    return None


def _by_beginning(courses: Mapping[str, list[Values]]) -> dict[str, list[Values]]:
    """By the first value of a course, where it is that of one alone."""
    counts = Counter(course[0].digest for course in courses.values())
    return {course[0].digest: course for course in courses.values() if counts[course[0].digest] == 1}


def _spoken(name: str) -> str:
    """A name without what tells it from others that the script gives no name."""
    return re.sub(r" @\w+", "", name)


def _set_apart(one: Recording, other: Recording) -> str | None:
    """A module that has other settings in the other version for a while, if there is one.

    Between two steps of an iteration modes may rightly change at another place.
    """
    pairs = list(zip(one.steps, other.steps))
    length = 2 * len(one.optimizers)
    for begin in range(len(pairs) - length + 1 if length else 0):
        window = pairs[begin : begin + length]
        first, second = window[0][0].modules, window[0][1].modules
        for name in first.keys() & second.keys():
            if first[name] != second[name] and all(
                (a.modules.get(name), b.modules.get(name)) == (first[name], second[name]) for a, b in window
            ):
                return name
    return None


def _others(run: Recording) -> dict[str, list[Values]]:
    return _courses(run, lambda step: step.others)


def _buffers(run: Recording) -> dict[str, list[Values]]:
    return _courses(run, lambda step: step.buffers)


def _courses(run: Recording, of: Callable[[RecordedStep], Mapping[str, Values]]) -> dict[str, list[Values]]:
    """By tensor: the values that it takes on, one after the other, at whichever steps that is seen."""
    found: dict[str, list[Values]] = {}
    last: Mapping[str, Values] = {}
    for step in run.steps:
        now = of(step)
        if now is last:
            continue
        for name, value in now.items():
            course = found.setdefault(name, [])
            if not course or course[-1].digest != value.digest:
                course.append(value)
        last = now
    return found


def _moving(courses: Iterable[list[Values]], *, twice: bool = False) -> Counter[tuple[int, ...]]:
    """The shapes of the tensors that change, whatever they are called; ``twice``: at two steps or more."""
    return Counter(course[0].shape for course in courses if len(course) > 1 + twice and _goes(course))


def _goes(course: list[Values]) -> bool:
    """Whether a tensor changes by more than rounding."""
    return any(_away(value, course[0]) for value in course)


def _away(value: Values, start: Values) -> bool:
    """Whether a value is surely another than that at the start."""
    if not (value.numeric and start.numeric) or value.shape != start.shape:
        return value.digest != start.digest
    return math.hypot(*value.minus(start)) > ROUNDING * max(value.norm, start.norm)


def _same_course(one: list[Values], other: list[Values]) -> bool:
    """Whether a tensor goes the same way for as long as both are seen.

    An average that is where its weights are stays there, but for rounding in one of two ways to write it.
    """
    return _alike(one, other) or _alike(_set_out(one), _set_out(other))


def _set_out(course: list[Values]) -> list[Values]:
    """A course without what is only rounding at its beginning."""
    rounding = itertools.takewhile(lambda value: not _away(value, course[0]), course[1:])
    return [course[0], *course[1 + len(list(rounding)) :]]


def _alike(one: list[Values], other: list[Values]) -> bool:
    for a, b in zip(one[1:], other[1:]):
        if a.digest == b.digest or not (a.numeric and b.numeric) or a.shape != b.shape:
            continue
        ways = a.minus(one[0]), b.minus(other[0])
        length = max(math.hypot(*way) for way in ways)
        if length > ROUNDING * max(a.norm, b.norm) and math.dist(*ways) > MOVED * length:
            return False
    return True
