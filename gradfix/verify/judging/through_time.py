"""Whether a repair goes back through time, for state that is carried over iterations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradfix.verify import claims
from gradfix.verify.judging.beside import kept_apart
from gradfix.verify.judging.cutting import cut_every
from gradfix.verify.judging.differences import (
    Apart,
    clips_of,
    consumed_at,
    left_by_itself,
    retains,
    schedules_of,
    settings_apart,
)
from gradfix.verify.judging.equivalence import goes_stale
from gradfix.verify.judging.iterations import common
from gradfix.verify.judging.results import Repair
from gradfix.verify.judging.trial import Trial
from gradfix.verify.recording.records import RecordedBackward, RecordedStep, Recording, Values


def _idle(run: Recording) -> bool:
    """Whether the steps of an optimizer do not move its weights, though they consume gradients."""
    for optimizer in run.optimizers:
        for step in run.steps_of(optimizer.index):
            if step.after is None or not any(state.moves for state in step.parameters):
                continue
            if all(state.value.digest == now.digest for state, now in zip(step.parameters, step.after)):
                return True
    return False


def compared_through_time(trial: Trial, repairs: Sequence[Repair]) -> str | Apart | None:
    """Whether each step consumes the sum over several iterations of the original; says so, if it does.

    If only the first one is known to, says what differs at the others; ``None`` if not even that.
    """
    lengths: set[int] = set()
    for seed in trial.seeds:
        original, run = trial.original(seed), trial.judged(seed)
        whole = trial.original(seed, keep=True, still=True, through=True)
        held = trial.judged(seed, still=True, through=True)
        if settings_apart(whole, run) or not _steps_well(original, run):
            return None
        for repair in repairs[:1]:
            model = trial.repaired(repair, seed)
            kept = kept_apart(model, run, in_earnest=False)
            if kept is not None:
                return Apart(f"{kept} (seed {seed})")
            for one in run.optimizers:
                if schedules_of(model, one.index) and not schedules_of(held, one.index):
                    return Apart(f"the settings of {one.name} do not change any more")
            clips = {(step.optimizer, frozenset(step.clips)) for step in model.steps}
            other = next((s for s in run.steps if (s.optimizer, frozenset(s.clips)) not in clips), None)
            if other is not None:
                return Apart(f"{run.optimizers[other.optimizer].name} clips differently: {clips_of(other)}")
        for optimizer in held.optimizers:
            steps = held.steps_of(optimizer.index)
            if not steps:
                continue
            length = _summed(whole, optimizer.index, consumed_at(steps[0]))
            if length is None:
                return _beyond(whole, held, steps)
            if not _goes_on(whole, held, steps, length):
                why = f"its first step uses the sum over {length} iterations, but later ones do not continue"
                return Apart(f"{why} where the one before ended (seed {seed})")
            apart = _cut_as_seldom(trial, repairs, seed, steps, length)
            if apart is not None:
                return apart
            lengths.add(length)
    if len(lengths) != 1 or goes_stale(trial):
        return None
    return f"its step uses the sum over {lengths.pop()} iterations of what the original's own graph gives"


FARTHER = "it goes back through more iterations than the run of the original has"


def _beyond(whole: Recording, held: Recording, steps: Sequence[RecordedStep]) -> Apart | None:
    """Whether the first step may sum more iterations than the run of the original was left to make."""
    if whole.ending == "finished" or len(held.backwards) >= len(whole.backwards):
        return None
    feeds = {feed for state in steps[0].parameters for feed in state.feeds if feed >= 0}
    taken = [held.backwards[feed].value for feed in feeds]
    losses = [call.value for call in whole.backwards]
    if not taken or any(_same_sum(losses[:count], taken) for count in range(1, len(losses) + 1)):
        return None
    # A loss that is too small for all of these iterations, where there are more steps, is another one.
    if len(steps) > 1 and _total(taken) < _total(losses):
        return None
    return Apart(FARTHER, known=False)


def _cut_as_seldom(
    trial: Trial, repairs: Sequence[Repair], seed: int, steps: Sequence[RecordedStep], length: int
) -> Apart | None:
    """What differs from gradfix's own fixes, made to cut the graph every ``length`` iterations only.

    On the first seed the weights are put back to others every other time, too.
    """
    if len(steps) < 2:
        return None
    _, before = trial.before
    found: Apart | None = None
    for repair, late in itertools.product(repairs, (False, True)):
        text = cut_every(before, repair.text, length, late)
        if text is None:
            continue
        model = trial.repaired(replace(repair, text=text), seed, keep=True, still=True, through=True)
        sums = _segments(model, steps[0].optimizer, length)
        # Where it is cut elsewhere, the first segment is another one.
        if not sums or not claims.same_gradients(sums[0], consumed_at(steps[0])):
            continue
        if len(sums) < 2:
            found = found or Apart(FARTHER, known=False)
            continue
        pairs = enumerate(zip(sums, steps), start=1)
        turn = next((n for n, (a, step) in pairs if not claims.same_gradients(a, consumed_at(step))), None)
        if turn is None and (model.ending != "finished" or len(sums) >= len(steps)):
            cut = replace(repair, text=text)
            return _moved_through(trial, cut, steps[0].optimizer, length) if seed == trial.seeds[0] else None
        what = f"step {turn or len(sums) + 1} does not use the sum over its own {length} iterations"
        found = Apart(f"{what}, though the first one does (seed {seed})")
    why = f"its first step uses the sum over {length} iterations, and later ones cannot be compared"
    return found or Apart(why, known=False)


def _moved_through(trial: Trial, cut: Repair, optimizer: int, length: int) -> Apart | None:
    """What differs for an optimizer in segments before which the weights were put back to others."""
    first = trial.seeds[0]
    held = trial.judged(first, still=True, through=True)
    iterations = common(held, held)
    moves = iterations.moving()
    run = trial.judged(first, still=True, through=True, moves=moves)
    rarely = [tuple(length * number for number in numbers) for numbers in moves]
    model = trial.repaired(cut, first, keep=True, still=True, through=True, moves=rarely)
    pairs = zip(_segments(model, optimizer, length), run.steps_of(optimizer))
    for turn, (consumed, step) in enumerate(pairs, start=1):
        if iterations.rests(optimizer, turn) and not claims.same_gradients(consumed, consumed_at(step)):
            what = f"step {turn} does not use the sum over its own {length} iterations"
            return Apart(f"{what} once the weights were replaced by others (seed {first})")
    return None


def _segments(model: Recording, optimizer: int, length: int) -> list[dict[int, Values]]:
    """What each so many iterations contribute to an optimizer; the last are fewer only if the run has
    ended."""
    sums: list[dict[int, Values]] = []
    calls = model.backwards
    for begin in range(0, len(calls), length):
        if begin + length > len(calls) and model.ending != "finished":
            break
        sums.append(_added(calls[begin : begin + length], optimizer))
    return sums


def _added(calls: Iterable[RecordedBackward], optimizer: int) -> dict[int, Values]:
    """What backward calls add to the gradients of an optimizer."""
    added: dict[int, Values] = {}
    for call in calls:
        _add(added, call, optimizer)
    return added


def _add(total: dict[int, Values], call: RecordedBackward, optimizer: int) -> None:
    """Add what one backward call adds."""
    for (index, place), share in call.shares.items():
        if index == optimizer:
            total[place] = total[place].plus(share) if place in total else share


def _total(losses: Sequence[Values | None]) -> float:
    return abs(sum(value.exact[0] for value in losses if value is not None and value.exact))


def _goes_on(whole: Recording, held: Recording, steps: Sequence[RecordedStep], length: int) -> bool:
    """Whether all steps do what the first one does, each with the iterations after those of the one before.

    Where a graph is cut between them the original's own holds more, so gradients are not comparable. But what
    is differentiated does not depend on where graphs are cut, nor which weights have a part in it; and a step
    consumes what its backward calls add, and nothing else.
    """
    first = {place for place, state in enumerate(steps[0].parameters) if state.moves}
    losses = [call.value for call in whole.backwards]
    done = 0
    for step in steps:
        calls = [
            held.backwards[feed] for feed in sorted({f for s in step.parameters for f in s.feeds if f >= 0})
        ]
        taken = losses[done : done + length]
        if len(taken) < length and whole.ending != "finished":
            return True  # the run of the original does not go so far
        done += length
        if {place for place, state in enumerate(step.parameters) if state.moves} != first:
            return False
        if not calls or not taken or not _same_sum(taken, [call.value for call in calls]):
            return False
        if not claims.same_gradients(_added(calls, step.optimizer), consumed_at(step)):
            return False
    return done >= len(losses) or (not left_by_itself(whole) and not left_by_itself(held))


def _same_sum(some: Sequence[Values | None], others: Sequence[Values | None]) -> bool:
    """Whether losses come to the same in all."""
    sums = []
    for values in (some, others):
        numbers = [value.exact[0] for value in values if value is not None and value.exact]
        if len(numbers) != len(values):
            return False
        sums.append(sum(numbers))
    return abs(sums[0] - sums[1]) <= claims.RELATIVE * max(map(abs, sums))


def _steps_well(original: Recording, run: Recording) -> bool:
    """Whether what is not compared with anything is sound: each step learns something new, by itself."""
    if run.ending not in ("finished", "steps", "backwards") or _idle(run):
        return False
    if retains(run) and not retains(original):
        return False
    if not run.moved_otherwise <= original.moved_otherwise:
        return False
    fresh = not any(claims.leftover(run.steps_of(optimizer.index)) for optimizer in run.optimizers)
    return fresh and all(step.consumes for step in run.steps)


def _summed(whole: Recording, optimizer: int, consumed: dict[int, Values | None]) -> int | None:
    """Over how many iterations (two or more) the shares in one optimizer have to be added up."""
    total: dict[int, Values] = {}
    for number, call in enumerate(whole.backwards, start=1):
        _add(total, call, optimizer)
        if number > 1 and claims.same_gradients(total, consumed):
            return number
    return None
