"""Which mistake an error is a symptom of.

Autograd raises the same two errors for quite different mistakes. Each failing backward of a run gets
exactly one diagnosis, so that no two codemods report it and none repairs another's mistake by silencing
its symptom.
"""

from __future__ import annotations

import enum

from gradfix.autograd.graph import Backward, InPlaceChange, Step
from gradfix.autograd.model_ledger import terms_of
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    calls_in,
    earlier_iteration,
    first_step,
    gradient_clears,
    operands_reaching,
    same_iteration,
    without_call,
)
from gradfix.rules.intent.leak_paths import calls_between, opponents, takes_turns
from gradfix.rules.intent.leak_paths import leak_path as leak_path
from gradfix.rules.intent.misdirected_steps import misdirected


class Diagnosis(enum.Enum):
    """The mistake behind a failing backward."""

    UNDETACHED = enum.auto()
    """A loss flows through its own network into one that only feeds it."""
    STALE = enum.auto()
    """A prediction made before a step is used in a backward after it."""
    CARRIED = enum.auto()
    """A value is carried from iteration to iteration with its graph."""
    OUTSIDE = enum.auto()
    """A graph is built before a loop, perhaps in another one, and traversed in every iteration."""
    USED_TWICE = enum.auto()
    """Two losses, one graph."""
    BACKPROPAGATED_TWICE = enum.auto()
    """One loss, by itself or as a part of a sum, and two backwards."""
    OVERWRITTEN = enum.auto()
    """An operation in place overwrites what another one has saved."""
    WRONG_STEP = enum.auto()
    """A step that another optimizer should have made has moved the weights."""


def diagnose(run: Run, event: Backward) -> Diagnosis | None:
    """The mistake behind ``event``'s failure; None where it does not fail or is not understood."""
    failure = event.failure
    if failure is None or failure.node is None or failure.culprit is None or not event.certain:
        return None
    node = failure.node
    if isinstance(failure.culprit, Step) and misdirected(run, failure.culprit) is not None:
        return Diagnosis.WRONG_STEP
    if not same_iteration(node, event):
        if earlier_iteration(node, event) is not None:
            return Diagnosis.CARRIED
        if failure.kind == "E1":
            if leaking(run, event) is not None:
                return Diagnosis.UNDETACHED
            return Diagnosis.OUTSIDE if stale_step(run, event) is None else Diagnosis.STALE
        return Diagnosis.STALE if isinstance(failure.culprit, Step) else None
    if leaking(run, event) is not None:
        return Diagnosis.UNDETACHED
    if isinstance(failure.culprit, InPlaceChange):
        return Diagnosis.OVERWRITTEN if failure.kind == "E2" and failure.leaf is None else None
    if stale_step(run, event) is not None:
        return Diagnosis.STALE
    if failure.kind == "E1" and isinstance(failure.culprit, Backward):
        twice = counted_twice(run, failure.culprit, event)
        return Diagnosis.BACKPROPAGATED_TWICE if twice else Diagnosis.USED_TWICE
    return None


def counted_twice(run: Run, first: Backward, second: Backward) -> bool:
    """Whether two backwards put one term into the same gradients, which nothing clears in between."""
    if not (first.accumulates and second.accumulates):
        return False
    if terms_of(first).keys().isdisjoint(terms_of(second)):
        return False
    reached = first.reached.keys() & second.reached.keys()
    return not any(
        reached & {*zero.leaves} for zero in between(gradient_clears(run), first.serial, second.serial)
    )


def leaking(run: Run, event: Backward) -> Backward | None:
    """The backward whose loss should have been cut off from the network that feeds it, if one should.

    Both backwards through the shared graph are candidates: the discriminator's loss may come before the
    generator's or after it.
    """
    failure = event.failure
    assert failure is not None and failure.node is not None
    candidates: list[Backward] = [event]
    if isinstance(failure.culprit, Backward):
        candidates.insert(0, failure.culprit)
    for candidate in candidates:
        fed = leak_path(run, candidate)
        if fed is None:
            continue
        if isinstance(failure.culprit, Backward) and failure.culprit.site is event.site:
            # Several steps on what the other network has made once: what that learns from is another loss.
            if not any(opponents(run, candidate, fed)):
                continue
        elif isinstance(failure.culprit, Backward):
            other = event if candidate is failure.culprit else failure.culprit
            if not takes_turns(run, candidate, other, fed):
                continue
        # What fails must lie in the part that feeds: beyond the loss's own networks.
        calls = {*calls_between(candidate, fed.optimizer.owned(), fed.leaves)}
        if failure.node in without_call(candidate, calls) or failure.node.call in calls:
            continue
        if any(reused(run, candidate, c) for c in calls if operands_reaching(c, fed.nodes)):
            continue
        return candidate
    return None


def reused(run: Run, backward: Backward, call: object) -> bool:
    """Whether another backward of the same iteration goes through this very call of the network.

    A backward that computed a gradient which is a part of this loss (a penalty) does not count.
    """
    parts = {n.site for n in backward.visited if n.op == "autograd.grad"}
    return any(
        other is not backward
        and other.site is not backward.site
        and other.site not in parts
        and any(n.call is call for n in other.visited)
        for other in backwards(run)
        if other.loops == backward.loops
    )


def stale_step(run: Run, event: Backward) -> Step | None:
    """The step that made a prediction stale which ``event`` goes through."""
    failure = event.failure
    assert failure is not None
    if isinstance(failure.culprit, Step):
        return failure.culprit if failure.kind == "E2" else None
    if not isinstance(failure.culprit, Backward):
        return None
    step = first_step(run, failure.culprit)
    if step is None or not failure.culprit.serial < step.serial < event.serial:
        return None
    moved = set(step.optimizer.owned())
    shared = [n for n in event.visited if n in failure.culprit.visited]
    if any(c.leaves & moved for c in calls_in(shared)):
        return step
    return None
