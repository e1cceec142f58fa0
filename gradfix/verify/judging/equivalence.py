"""Whether a repair trains as a program does that is known to be right."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradfix.verify import claims
from gradfix.verify.judging.beside import kept_apart
from gradfix.verify.judging.differences import (
    Apart,
    difference,
    first_found,
    gradients_of,
    keeps_needlessly,
    outdated,
    retains,
)
from gradfix.verify.judging.iterations import CommonIterations, Counts, common
from gradfix.verify.judging.results import Repair
from gradfix.verify.judging.trial import Trial
from gradfix.verify.recording.records import RecordedStep, Recording, plural


@dataclass(frozen=True, slots=True)
class Found:
    """What came of holding the judged version against one repair."""

    apart: Apart | None
    manner: str = ""
    """How it trains as the repair does, if so."""


def compared(trial: Trial, repair: Repair) -> Found:
    """Whether the judged version consumes what the original with ``repair`` consumes."""
    first = trial.seeds[0]
    apart = (
        outdated(trial.judged(first)) or Apart("they cannot be compared in another way", known=False)
        if repair.held
        else _in_earnest(trial.repaired(repair, first), trial.judged(first), first)
    )
    if repair.held and apart is not None and apart.known:
        return Found(apart)
    if apart is None:
        trial.prepare([repair], trial.seeds)
        apart = first_found(
            _in_earnest(trial.repaired(repair, seed), trial.judged(seed), seed) for seed in trial.seeds[1:]
        )
    if repair.ruled:
        needless = keeps_needlessly(trial.judged(first))
    else:
        kept = max(retains(trial.repaired(repair, first)), retains(trial.original(first)))
        needless = retains(trial.judged(first)) > kept
    if needless:
        # Its gradients may be right. But what it keeps is memory, and the mistake is only hidden.
        hidden = Apart("it needs retain_graph=True, which no right repair does")
        return Found(hidden if apart is None or not apart.known else apart)
    if apart is None:
        doubts = [apart for look in (_later, _moved) if (apart := look(trial, repair)) is not None]
        later = next((apart for apart in doubts if apart.known), None)
        if later is None and len(doubts) == 2 and trial.judged(first).optimizers:
            later = doubts[0]
        return Found(None, _manner(trial, repair)) if later is None else Found(later)
    other = _other_order(trial, repair)
    if other is None:
        return Found(None, "with optimizer updates off, the optimizers use the gradients")
    # What differs where the weights do move is what people can see, but it is no reason in another order.
    pairs = zip(trial.repaired(repair, first).steps, trial.judged(first).steps)
    in_order = all(mine.optimizer == theirs.optimizer for mine, theirs in pairs)
    return Found(apart if other.known and in_order and not repair.held else other)


def compared_with_its_draws(trial: Trial, repair: Repair) -> Found | None:
    """Whether the judged version consumes what ``repair`` consumes, given the same random numbers for it."""
    first = trial.seeds[0]
    if not trial.judged(first).optimizers or not _same_draws_elsewhere(trial, repair):
        return None
    given = trial.paired(repair)
    found = None if given is None else compared(given, repair)
    if found is None or found.apart is not None:
        return None
    return Found(None, f"given the same random numbers, {found.manner}")


def _same_draws_elsewhere(trial: Trial, repair: Repair) -> bool:
    """Whether of all generators only torch's gives other numbers to the judged version."""
    first = trial.seeds[0]
    one, other = trial.repaired(repair, first), trial.judged(first)
    apart = {
        name
        for optimizer in one.optimizers
        for mine, theirs in zip(one.steps_of(optimizer.index), other.steps_of(optimizer.index))
        for name in mine.random.apart(theirs.random)
    }
    return apart == {"torch"}


def _later(trial: Trial, repair: Repair) -> Apart | None:
    """What differs further on."""
    first = trial.seeds[0]
    return _in_earnest(trial.repaired(repair, first, through=True), trial.judged(first, through=True), first)


def _manner(trial: Trial, repair: Repair) -> str:
    """How the judged version trains as the repair does, in words."""
    on = f"on {len(trial.seeds)} seeds"
    if trial.judged(trial.seeds[0]).optimizers:
        return f"{on}, the optimizers use the gradients"
    found = [claims.by_hand(trial.repaired(repair, seed), trial.judged(seed)) for seed in trial.seeds]
    if not all(one.whole for one in found):
        on += f" and for the first {plural(min(one.calls for one in found), 'backward call')}"
    return f"{on}, the weights are updated with the gradients"


def _other_order(trial: Trial, repair: Repair) -> Apart | None:
    """What differs, if the judged version does not only train the networks in another order than the repair.

    With the weights put back after each step the order makes no difference. Nor would it make one then if
    something else than steps moved the weights, or if graphs held weights that have moved: so both are
    looked for where the weights do move. And what goes on with gradients of former weights, or with a copy
    of these, is seen where one optimizer's weights alone move, and where all are put back to others.
    """
    first = trial.seeds[0]
    if not trial.repaired(repair, first).optimizers:
        return Apart("there is no optimizer")
    for seed in trial.seeds:
        model, run = trial.repaired(repair, seed), trial.judged(seed)
        if model.moved_otherwise != run.moved_otherwise:
            return Apart("something other than a step changes the weights")
        kept = kept_apart(model, run, in_earnest=False)
        if kept is not None:
            return Apart(f"{kept} (seed {seed})")
        model, run = trial.repaired(repair, seed, still=True), trial.judged(seed, still=True)
        apart = difference(model, run, seed)
        if apart is not None:
            return replace(apart, why=f"with optimizer updates off, {apart.why}")
    apart = first_found(_alone(trial, repair, one.index) for one in trial.judged(first).optimizers)
    if apart is None:
        apart = _moved(trial, repair)
    if apart is not None:
        return apart
    return Apart("gradients are computed from outdated weights") if goes_stale(trial) else None


def _alone(trial: Trial, repair: Repair, optimizer: int) -> Apart | None:
    """What differs for an optimizer while it alone moves its weights."""
    first = trial.seeds[0]

    def its(run: Recording) -> Recording:
        mine = (e for e in run.events if not isinstance(e, RecordedStep) or e.optimizer == optimizer)
        return replace(run, events=tuple(mine))

    model, run = (
        its(trial.repaired(repair, first, alone=optimizer)),
        its(trial.judged(first, alone=optimizer)),
    )
    if repair.held and outdated(model) is not None:
        return None  # What it moves is what the model's own entries are computed with.
    return difference(model, run, first, partly=True)


def _moved(trial: Trial, repair: Repair) -> Apart | None:
    """What differs in iterations before which the weights were put back to others: every other one."""
    first = trial.seeds[0]
    whole = (
        trial.repaired(repair, first, still=True, through=True),
        trial.judged(first, still=True, through=True),
    )
    apart = difference(*whole, first)
    if apart is not None and apart.known:
        return apart
    iterations = common(*whole)
    if not iterations.ends:
        return Apart("there are too few steps to compare", known=False)
    return _moved_in(trial, repair, iterations, whole[0]) or _moved_in(
        trial, repair, iterations.later(), None
    )


def _moved_in(
    trial: Trial, repair: Repair, iterations: CommonIterations, still: Recording | None
) -> Apart | None:
    """What differs in the resting ones of these iterations, in which all optimizers of ``still`` should step.

    In the other iterations networks see others that were moved before, if those step first. So they are
    compared only if networks see the same ones in both versions, as what they consume in the first iteration
    tells.
    """
    first = trial.seeds[0]
    moves = iterations.moving()
    if not moves:
        return None
    runs = (
        trial.repaired(repair, first, moves=moves, through=True),
        trial.judged(first, moves=moves, through=True),
    )
    kept = kept_apart(*runs, in_earnest=True)
    if kept is not None:
        return Apart(kept)
    resting = iterations.resting(runs[0])
    alike = _begin_alike(trial.repaired(repair, first), trial.judged(first), iterations.ends[0])
    one, other = runs if alike else (resting, iterations.resting(runs[1]))
    # What optimizers remember of the iterations between may differ.
    apart = difference(one, other, first, updates=False, partly=True)
    if apart is not None:
        return apart
    for optimizer in one.optimizers if still is not None else ():
        # One that steps once has nothing to go on with.
        taken = len(resting.steps_of(optimizer.index))
        if still is not None and len(still.steps_of(optimizer.index)) > 1 > taken:
            return Apart(f"{optimizer.name} takes too few steps to compare", known=False)
    return None


def _begin_alike(one: Recording, other: Recording, until: Counts) -> bool:
    """Whether two versions consume the same until each optimizer has taken so many steps."""
    return all(
        claims.same_gradients(
            {at: g for at, g in gradients_of(mine).items() if g is not None}, gradients_of(theirs)
        )
        for optimizer, count in zip(one.optimizers, until)
        for mine, theirs in zip(one.steps_of(optimizer.index)[:count], other.steps_of(optimizer.index))
    )


def _in_earnest(one: Recording, other: Recording, seed: int) -> Apart | None:
    """What differs between two versions whose weights do move."""
    apart = difference(one, other, seed)
    if apart is not None and apart.known:
        return apart
    for index, place in sorted(one.moved_otherwise ^ other.moved_otherwise):
        what = one.parameter(index, place)
        return Apart(f"in one version something other than a step changes {what} (seed {seed})")
    kept = kept_apart(one, other, in_earnest=apart is None)
    return apart if kept is None else Apart(f"{kept} (seed {seed})")


def goes_stale(trial: Trial) -> bool:
    """Whether gradients are computed from what has changed since graphs saved it, and autograd was fooled."""
    first = trial.seeds[0]
    return difference(trial.judged(first), trial.judged(first, keep=True), first) is not None
