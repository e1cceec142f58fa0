"""Programs without an optimizer: what their weights are moved by, and what these come to be."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradfix.verify.checks import Check
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.gradients import RELATIVE, largest_of, leaves_apart, nearly_equal
from gradfix.verify.recording.records import Recording, Values, plural


@dataclass(frozen=True, slots=True)
class ByHand:
    """How two programs without an optimizer compare."""

    apart: str | None
    """What differs, in words."""
    known: bool = True
    """Whether that is known to be different, or only not known to be equal."""
    calls: int = 0
    """At how many backward calls of the other program they were compared."""
    whole: bool = False
    """Whether these are all that both make."""


def by_hand(one: Recording, other: Recording) -> ByHand:
    """Compare programs without an optimizer: what weights are moved by, and what they come to be.

    How often gradients are computed before weights move is free.
    """
    mine, theirs = _moves(one), _moves(other)
    finished = one.ending == other.ending == "finished"
    calls = 0
    for turn, (a, b) in enumerate(zip(mine, theirs), start=1):
        problem = _weights_apart(a.weights, b.weights) or _given_apart(a.gradients, b.gradients)
        if problem is not None:
            return ByHand(f"at update {turn}, {problem}")
        calls += b.calls
    if any(
        run.ending == "finished" and len(turns) < len(more)
        for run, turns, more in ((one, mine, theirs), (other, theirs, mine))
    ):
        return ByHand(f"weights change in {plural(len(theirs), 'update')}, not {len(mine)}")
    if finished and (problem := _weights_apart(one.held, other.held)) is not None:
        return ByHand(f"at the end, {problem}")
    if min(len(mine), len(theirs)) < min(len(mine), 2):
        return ByHand(
            "weights do not change as in the original", known=other.ending in ("finished", "backwards")
        )
    if not mine or (len(mine) < 2 and not finished):
        return ByHand("there is no optimizer, and no gradient to compare", known=False)
    # By numbers, what moves by no more than rounding does not differ from what does not move.
    common = min(len(mine), len(theirs))
    alone = sorted(_moving(one, mine[:common], finished) ^ _moving(other, theirs[:common], finished))
    if alone:
        return ByHand(f"{alone[0]} changes in one version only, though by no more than rounding", known=False)
    return ByHand(None, calls=calls, whole=finished)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a program without an optimizer does until weights move."""

    weights: dict[str, Values]
    """What the leaves hold until then."""
    gradients: dict[str, Values | None]
    """Their gradients in the end."""
    calls: int
    """How many backward calls it takes."""


def _moves(run: Recording) -> list[_Turn]:
    """What the leaves hold, and the gradients that are computed, each time before any of them moves."""
    found: list[_Turn] = []
    for call in run.backwards:
        last = found[-1] if found else _Turn({}, {}, 0)
        moved = any(
            name in last.weights and last.weights[name].digest != now.digest
            for name, now in call.weights.items()
        )
        if moved or not found:
            found.append(_Turn(dict(call.weights), dict(call.leaves), 1))
        else:
            weights, gradients = {**last.weights, **call.weights}, {**last.gradients, **call.leaves}
            found[-1] = _Turn(weights, gradients, last.calls + 1)
    # A budget may end a run in the middle of a turn.
    return found[:-1] if run.ending != "finished" and len(found) > 1 else found


def _moving(run: Recording, turns: Sequence[_Turn], ended: bool) -> set[str]:
    """The leaves that hold something else at some turn than at the one before."""
    held = [turn.weights for turn in turns] + ([dict(run.held)] if ended else [])
    return {
        name
        for before, after in itertools.pairwise(held)
        for name in before.keys() & after.keys()
        if before[name].digest != after[name].digest
    }


def _weights_apart(one: Mapping[str, Values], other: Mapping[str, Values]) -> str | None:
    """The first leaf of both that holds something else, in words."""
    overall = largest_of(*one.values(), *other.values())
    for name in sorted(one.keys() & other.keys()):
        if not nearly_equal(one[name], other[name], overall, RELATIVE):
            return f"{name} differs by {one[name].distance(other[name]):.1e} of its size"
    return None


def _given_apart(one: Mapping[str, Values | None], other: Mapping[str, Values | None]) -> str | None:
    """The first leaf whose gradients differ by more than rounding in the largest of them, in words."""
    overall = largest_of(*one.values(), *other.values())

    def of_note(given: Mapping[str, Values | None]) -> dict[str, Values | None]:
        pairs = ((name, (given.get(name), one.get(name), other.get(name))) for name in given)
        return {name: these[0] for name, these in pairs if largest_of(*these) > RELATIVE * overall}

    return leaves_apart(of_note(one), of_note(other))


def leaves(case: Case) -> list[Check]:
    """Whether leaf gradients stay equal in a program without an optimizer."""
    if case.known.optimizers or case.claim.unchanged != "all":
        return []
    checks = []
    compared = 0
    still = never_moved(case)
    for a, b in zip(case.before.backwards, case.after.backwards):
        if a.place.receiver != b.place.receiver:
            break
        owed = {name: value for name, value in a.leaves.items() if name not in still or name in b.leaves}
        problem = leaves_apart(owed, b.leaves)
        if problem:
            return [Check("leaves", "fails", f"after backward call {a.index + 1}, {problem}")]
        compared += 1
    if compared:
        of = plural(compared, "backward call")
        checks.append(Check("leaves", "holds", f"leaf gradients equal after {of}"))
    original = case.reference or case.before
    if original.ending == case.after.ending == "finished":
        owed = {name: value for name, value in original.leaves.items() if name not in still}
        problem = leaves_apart(owed, {n: v for n, v in case.after.leaves.items() if n not in still})
        kept = " of the original with its graphs kept" if case.reference else ""
        if problem:
            checks.append(Check("leaves", "fails", f"at the end, {problem}", "end"))
        elif original.leaves:
            checks.append(Check("leaves", "holds", f"leaf gradients at the end equal those{kept}", "end"))
    return checks


def never_moved(case: Case) -> set[str]:
    """The leaves that hold the same all through the original, while others are moved: data, not weights.

    Nobody consumes the gradients of one.
    """
    held = [dict(call.weights) for call in case.before.backwards] + [dict(case.before.held)]
    moved = {
        name
        for one, other in itertools.pairwise(held)
        for name in one.keys() & other.keys()
        if one[name].digest != other[name].digest
    }
    return {name for each in held for name in each} - moved if moved else set()
