"""Whether runs show that a fix changes anything: a fix without effect there is not proved."""

from __future__ import annotations

from collections import Counter

from gradfix.core.codemod import Effect
from gradfix.verify.checks import Check
from gradfix.verify.claims.case import Case
from gradfix.verify.claims.gradients import compare, leaves_apart
from gradfix.verify.recording.records import Graphs, RecordedStep, Recording, plural


def observed(case: Case) -> list[Check]:
    """Whether the two versions do anything differently with gradients or graphs.

    An error of the original and steps without a gradient are left to the checks ``original`` and
    ``consumes``.
    """
    if case.effect is Effect.CHANGES and case.claim.losses == "rerouted" and case.reference is not None:
        if _steps_apart(case.reference, case.after) is None:
            detail = "every step uses the gradients of the original with its graphs kept: none is rerouted"
            return [Check("observed", "not checked", detail)]
        return []
    if case.effect is Effect.REPAIRS or case.before.crash is not None or case.before.uncaught is not None:
        return []
    if case.effect is Effect.CHANGES:
        seen = _trains_otherwise(case.before, case.after)
        missing = "every step of both versions uses the same gradients: the fix had no effect in this run"
    else:
        seen = _builds_otherwise(case.before, case.after)
        missing = "both versions build and keep the same graphs: the fix had no effect in this run"
    return [Check("observed", "holds", seen) if seen else Check("observed", "not checked", missing)]


def _steps_apart(one: Recording, other: Recording) -> str | None:
    """The first step that consumes something else in another version, in words."""
    turns: Counter[int] = Counter()
    for step in one.steps:
        mates, turn = other.steps_of(step.optimizer), turns[step.optimizer]
        turns[step.optimizer] += 1
        if turn < len(mates) and _apart(step, mates[turn], one):
            who = one.optimizers[step.optimizer].name
            return f"step {turn + 1} of {who} is the first at which the versions differ"
    return None


def _trains_otherwise(one: Recording, other: Recording) -> str | None:
    """What another version trains otherwise, in words."""
    if (apart := _steps_apart(one, other)) is not None:
        return apart
    if one.ending == other.ending == "finished" and len(other.steps) != len(one.steps):
        return "the versions do not take as many steps"
    if len(one.optimizers) != len(other.optimizers):
        return "the versions construct different optimizers"
    for mine_, theirs_ in zip(one.backwards, other.backwards):
        if mine_.reached != theirs_.reached or leaves_apart(mine_.leaves, theirs_.leaves) is not None:
            return f"the backward of {mine_.place.receiver or 'the loss'} gives other gradients"
    return None


def _apart(one: RecordedStep, other: RecordedStep, name: Recording) -> bool:
    found = compare(one, other, name)
    return (
        found.problem is not None
        or found.unknown is not None
        or (one.settings, one.modules) != (other.settings, other.modules)
    )


def _builds_otherwise(one: Recording, other: Recording) -> str | None:
    """What differs between the graphs of two versions, in words."""
    for mine, theirs in zip(one.backwards, other.backwards):
        name = mine.place.receiver or "the loss"
        if mine.retain != theirs.retain:
            return f"the graph of {name} is {'retained' if theirs.retain else 'freed'}"
        if mine.reached != theirs.reached:
            counts = len(theirs.reached), len(mine.reached)
            return "the backward of {} computes gradients for {} parameters, not {}".format(name, *counts)
        if mine.saved != theirs.saved:
            return f"the graph of {name} saves other tensors"
    if len(one.backwards) != len(other.backwards):
        return "there are fewer backward calls" if len(other.backwards) < len(one.backwards) else None
    for before, after in zip(_graphs(one), _graphs(other)):
        if before[1] > after[1]:
            return f"{plural(after[1], 'used graph')} kept, not {before[1]}"
        if before[2] > after[2]:
            return "fewer references to tensors with a graph are kept"
        if before[0] != after[0]:
            return "fewer operations are recorded in graphs, or others"
    return None


def _graphs(run: Recording) -> list[Graphs]:
    return [*(step.graphs for step in run.steps), run.graphs]
