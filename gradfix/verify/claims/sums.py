"""Whether what steps use is the sum of their entries, as the backward calls gave them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gradfix.verify.claims.gradients import RELATIVE, largest_of, nearly_equal
from gradfix.verify.recording.records import ParameterState, RecordedStep, Recording, Values

HALF = 2**-6
"""How far numbers of half precision may be apart that are computed in two ways, relative to the larger."""
FACTORS = 1e-3
"""The same of the factors by which gradients are multiplied."""


def altered(
    run: Recording,
    steps: Sequence[RecordedStep],
    original: Recording,
    theirs: Sequence[RecordedStep],
    *,
    clamps: bool,
) -> str | None:
    """A step whose gradients are not the sum of its entries, in words.

    What clips and unscales all of them is known, and left out. What else multiplies them does so in the
    original, too.

    Args:
        run: The fixed program, its weights held still.
        steps: Those of one optimizer in it.
        original: The original.
        theirs: The steps of the optimizer in that.
        clamps: Whether the fix has each element clipped by itself.
    """
    # Where nothing but the values of losses is known, there are no entries.
    usual = {_factor(original, one) for one in theirs if any(call.shares for call in original.backwards)}
    numbers = [1.0, *filter(None, usual)]
    for turn, step in enumerate(steps, start=1):
        factor = _factor(run, step)
        if factor is None:
            known = None in usual or ((clamps or bool(step.clips)) and _clamped(run, step))
        else:
            known = any(math.isclose(factor, one, rel_tol=FACTORS) for one in numbers)
        if not known:
            return f"step {turn} uses gradients that are not, or not only, what its losses gave"
    return None


def _sums(run: Recording, step: RecordedStep) -> Mapping[int, Values]:
    """By position of a parameter: what the backward calls have given that its gradient holds."""
    found: dict[int, Values] = {}
    for place, state in enumerate(step.parameters):
        for feed in dict.fromkeys(one for one in state.feeds if one >= 0):
            share = run.backwards[feed].shares.get((step.optimizer, place))
            if share is not None:
                found[place] = found[place].plus(share) if place in found else share
    return found


def _factor(run: Recording, step: RecordedStep) -> float | None:
    """By what number the sum of its entries was multiplied for a step to use it; ``None`` if by several."""
    sums = _sums(run, step)
    overall = largest_of(*sums.values())
    found: set[float] = set()
    for place, total in sums.items():
        state = step.parameters[place]
        if state.gradient is None or not state.gradient.numeric or not total.numeric:
            continue
        if _same(state, total.times(step.scale), overall):
            continue
        factor = state.gradient.largest / total.largest if total.largest else 0.0
        if not factor or not _same(state, total.times(factor), overall):
            return None
        found.add(factor / step.scale)
    return 1.0 if not found else found.pop() if max(found) - min(found) <= FACTORS * max(found) else None


def _same(state: ParameterState, total: Values, overall: float) -> bool:
    """Whether a parameter's gradient is this, but for rounding."""
    assert state.gradient is not None
    relative = HALF if "16" in state.gradient.dtype else RELATIVE
    return nearly_equal(state.gradient, total, overall, relative, state.noise, state.floor)


def _clamped(run: Recording, step: RecordedStep) -> bool:
    """Whether a step uses the sum of its entries with each element clipped at one bound."""
    bound = largest_of(*(state.gradient for state in step.parameters))
    pairs = [
        (used, given)
        for place, total in _sums(run, step).items()
        if (gradient := step.parameters[place].gradient) is not None and gradient.exact and total.exact
        for used, given in zip(gradient.exact, total.exact)
    ]
    return bool(pairs) and all(
        abs(used - max(-bound, min(bound, given))) <= RELATIVE * bound for used, given in pairs
    )
