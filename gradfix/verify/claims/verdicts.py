"""What is said of a claim: single checks, those of several seeds, and whether they leave anything open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradfix.verify.checks import COMPARISONS, CONTRADICTION, Check
from gradfix.verify.recording.records import RecordedFailure, Recording


@dataclass(frozen=True, slots=True)
class Faults:
    """What the model says is wrong with a program, so that autograd may raise for it."""

    lines: frozenset[int] = frozenset()
    """The lines of the findings."""
    kinds: frozenset[str] = frozenset()
    """The errors that they are about."""

    def explain(self, error: RecordedFailure) -> bool:
        """Whether an error comes of one of them."""
        return error.kind in self.kinds or any(error.place.covers(line) for line in self.lines)


@dataclass(frozen=True, slots=True)
class UpdatesOff:
    """Both versions run with every optimizer's weights put back after each step."""

    reference: Recording
    """The original, its graphs kept."""
    after: Recording


def settled(checks: Sequence[Check], original: Recording, fixed: Recording) -> bool:
    """Whether the checks of one seed leave no question that a number could answer.

    Every check holds, hashes have shown every gradient that every optimizer consumes to be equal, and
    neither Python's nor numpy's random numbers, by which a script may take another turn, were drawn.

    Args:
        checks: The checks.
        original: The run of the original that gets furthest (:func:`longest`).
        fixed: That of the fixed program.
    """
    # Numbers do not show the effect of what has none.
    if not checks or any(one.verdict != "holds" and one.name != "observed" for one in checks):
        return False
    compared = [one for one in checks if one.name in COMPARISONS]
    name = "reference" if any(one.name == "reference" for one in compared) else "unchanged"
    whole = sum(one.name == name for one in compared) == sum(
        bool(original.steps_of(optimizer.index)) for optimizer in original.optimizers
    )
    drawn = {(step.random.python, step.random.numpy) for step in (*original.steps, *fixed.steps)}
    return bool(compared) and whole and all(one.by_hash for one in compared) and len(drawn) == 1


def merge(seeds: Sequence[int], by_seed: Sequence[Sequence[Check]]) -> list[Check]:
    """One list of checks from those of several seeds: what fails on one seed fails."""
    found: dict[tuple[str, str], list[tuple[int, Check]]] = {}
    for seed, checks in zip(seeds, by_seed):
        for one in checks:
            found.setdefault((one.name, one.subject), []).append((seed, one))
    merged = []
    for group in found.values():
        failed = [(seed, one) for seed, one in group if one.verdict == "fails"]
        held = [one for _, one in group if one.verdict == "holds"]
        # A fixed program that has not been seen to run on every seed has not been seen to run.
        if group[0][1].name == "fixed-runs" and len(held) < len(group):
            held = []
        doubted = [one for _, one in group if one.detail.startswith(CONTRADICTION)]
        if doubted:
            merged.append(doubted[0])
        elif failed:
            seed, one = failed[0]
            merged.append(
                replace(one, detail=f"{one.detail} (seed {seed})" if len(seeds) > 1 else one.detail)
            )
        elif held:
            part = f" (on {len(held)} of {len(group)} seeds)" if len(held) < len(group) else ""
            merged.append(replace(held[0], detail=held[0].detail + part))
        else:
            merged.append(next(one for _, one in group if one.verdict == "not checked"))
    return merged


def contradiction(*recordings: Recording | None) -> str | None:
    """Where one hash stands for two different values in runs with the same seed, in words."""
    found: dict[str, str] = {}
    for recording in recordings:
        for step in recording.steps if recording is not None else ():
            for position, state in enumerate(step.parameters):
                for key, value in ((state.gradient_hash, state.gradient), (state.value_hash, state.value)):
                    # The payload of a NaN is free.
                    if key is None or value is None or not value.finite or not value.numeric:
                        continue
                    if found.setdefault(key, value.digest) != value.digest:
                        assert recording is not None
                        what = recording.parameter(step.optimizer, position)
                        return f"{what} at {step.place} has the same hash as other values"
    return None


def doubted(checks: list[Check], doubt: str | None) -> list[Check]:
    """The checks, of which those that may rest on hashes say nothing where there is a ``doubt``."""
    if doubt is None:
        return checks
    why = f"{CONTRADICTION}: {doubt}"
    hashed = ("unchanged", "reference")
    kept = [replace(one, verdict="not checked", detail=why) if one.name in hashed else one for one in checks]
    return (
        kept if any(one.name in hashed for one in kept) else [*kept, Check("unchanged", "not checked", why)]
    )
