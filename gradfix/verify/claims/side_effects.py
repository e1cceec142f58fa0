"""What surrounds gradients: random draws and buffers, step for step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gradfix.verify.checks import NO_NUMBERS, Check
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.gradients import GROWN, GROWTH, RELATIVE, compare, largest_of, nearly_equal
from gradfix.verify.recording.records import RecordedStep, Recording, plural


@dataclass(frozen=True, slots=True)
class SideEffectComparison:
    """How the random draws and the buffers of two versions compare, step for step."""

    compared: int
    """Steps at which they were compared."""
    stopped: str | None
    """Why later ones were not."""
    random_from: str | None
    """The first step at which a random generator is in another state, for people."""
    generators: tuple[str, ...]
    """The generators of which that is true (see :class:`Draws`)."""
    buffers_from: str | None
    """The first step at which a buffer holds something else, for people."""
    buffers: tuple[str, ...]
    """The buffers that do so there."""
    buffers_compared: int
    """How many buffers both versions have."""
    buffers_unknown: bool
    """Whether some buffers have other hashes, and there are no values."""


def longest(before: Recording, reference: Recording | None) -> Recording:
    """The run of the original that gets furthest."""
    return reference if reference is not None and reference.steps else before


def compare_side_effects(one: Recording, other: Recording) -> SideEffectComparison:
    """Compare the random draws and the buffers at the steps that two versions take.

    Each optimizer's k-th step is held against its k-th. Once two of them consume different gradients the
    weights differ, and with them what a forward makes of the buffers: there the comparison ends. Versions
    that construct different optimizers are not compared.
    """
    taken: Counter[int] = Counter()
    compared = known = 0
    stopped = random_from = buffers_from = None
    generators: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    unknown = False
    for step in one.steps if len(one.optimizers) == len(other.optimizers) else ():
        turn = taken[step.optimizer]
        taken[step.optimizer] += 1
        mates = other.steps_of(step.optimizer)
        if turn >= len(mates):
            break
        mate = mates[turn]
        here = f"step {turn + 1} of {one.optimizers[step.optimizer].name}"
        found = compare(step, mate, one)
        if random_from is None and (generators := step.random.apart(mate.random)):
            random_from = here
        if found.drift > GROWN:
            # Steps of another size have moved them: what a forward has made of the buffers is another thing.
            compared += 1
            stopped = f"from {here} on the weights differ"
            break
        if buffers_from is None:
            known = max(known, len(step.buffers.keys() & mate.buffers.keys()))
            buffers, unclear = _buffers_apart(step, mate, found.drift)
            unknown = unknown or unclear
            buffers_from = here if buffers else None
        compared += 1
        if found.problem is not None or found.unknown is not None:
            stopped = f"from {here} on the weights differ"
            break
    return SideEffectComparison(
        compared, stopped, random_from, generators, buffers_from, buffers, known, unknown
    )


def _buffers_apart(one: RecordedStep, other: RecordedStep, drift: float) -> tuple[tuple[str, ...], bool]:
    """The buffers that hold something else, and whether that cannot be told of some.

    Whole numbers (how many batches were seen) have to be equal; others within the tolerance for gradients.
    """
    pairs = [
        (name, value, other.buffers[name]) for name, value in one.buffers.items() if name in other.buffers
    ]
    fractions = [value for _, *both in pairs for value in both if "float" in value.dtype]
    overall = largest_of(*(value for value in fractions if value.finite))
    relative = max(RELATIVE, min(GROWTH * drift, GROWN))
    apart = []
    unclear = False
    for name, a, b in pairs:
        if a.digest == b.digest:
            continue
        if not (a.numeric and b.numeric):
            unclear = True
        elif "float" not in a.dtype or not nearly_equal(a, b, overall, relative):
            apart.append(name)
    return tuple(apart), unclear


def unaltered(case: Case) -> list[Check]:
    """Whether random draws and buffers are the same, or the claim says that they may differ."""
    found = compare_side_effects(longest(case.before, case.reference), case.after)
    if not found.compared:
        return []
    checks = [_part(case, "random", "random numbers", found, found.random_from, found.generators)]
    if found.buffers_unknown and not found.buffers_from:
        why = f"buffers: their hashes differ, {NO_NUMBERS}"
        checks.append(Check("buffers", "not checked", why))
    elif found.buffers_compared:
        what = plural(found.buffers_compared, "buffer")
        checks.append(_part(case, "buffers", what, found, found.buffers_from, found.buffers))
    return checks


def _part(
    case: Case, name: str, what: str, found: SideEffectComparison, where: str | None, which: Sequence[str]
) -> Check:
    """The verdict on one of them, given ``where`` the versions part and in ``which``."""
    if where is None:
        at = "the 1 step" if found.compared == 1 else f"{found.compared} steps"
        rest = f"; {found.stopped}" if found.stopped else ""
        return Check(name, "holds", f"{what} the same at {at}{rest}")
    more = f" and {len(which) - 3} more" if len(which) > 3 else ""
    detail = f"{what} differ from {where} on ({', '.join(which[:3])}{more})"
    if case.claim.same_forwards:
        return Check(name, "fails", f"{detail}, although the fix should not change when networks run")
    return Check(name, "holds", f"{detail}: as intended, the fix runs a network again, or at another time")
