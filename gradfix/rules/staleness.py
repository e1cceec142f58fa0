"""Losses that were computed with other weights than those that a step moves.

One question of every backward: which networks were called before a step that has moved their weights since?
What comes of that differs: autograd raises, or gives gradients of old weights, or of a mixture of both, or
the script has detached the old prediction, so that the loss has no gradient from it.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import (
    Backward,
    Leaf,
    ManualStep,
    ModuleCall,
    Node,
    Step,
    first_divergence,
    reachable_nodes,
)
from gradfix.autograd.model_ledger import SUMS, TOTALS, operation
from gradfix.autograd.operators import is_loss
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import (
    backwards,
    between,
    calls_in,
    earlier_iteration,
    ever_finds_gradient,
    of_kind,
    optimizer_of_loss,
    steps,
)
from gradfix.autograd.values import Tensor, tensors_in
from gradfix.core.syntax import undetached
from gradfix.rules.diagnosis import Diagnosis, diagnose, stale_step

Update = Step | ManualStep
"""What moves weights by their gradients."""


class Outcome(enum.Enum):
    """What comes of a backward through an old prediction."""

    RAISES = enum.auto()
    """Autograd raises: the old weights are gone, or the graph is."""
    MIXED = enum.auto()
    """Old activations meet new weights, which the version counters do not show."""
    OLD = enum.auto()
    """No weight was saved: the gradients are those of the old weights, and a step applies them to the new."""
    DETACHED = enum.auto()
    """The prediction is a term of the loss that has no graph."""
    CUT_OFF = enum.auto()
    """Its input was detached, so that the step on the loss finds no gradient."""


@dataclass(eq=False)
class Stale:
    """A backward of a loss that was computed, in part, before a step moved the weights."""

    run: Run
    event: Backward
    step: Update
    calls: list[ModuleCall]
    """The network calls that the step made stale."""
    outcome: Outcome
    detached: ast.Call | None = None
    """The `pred.detach()` that stands as a term of the loss."""


def raising(run: Run) -> dict[Hashable, Stale]:
    """The backwards that raise because a step made a prediction stale."""
    return _by_place(one for event in backwards(run) if (one := _raising(run, event)) is not None)


def silent(run: Run) -> dict[Hashable, Stale]:
    """The losses that a step made stale, and that autograd says nothing about."""
    updates: list[Update] = sorted([*steps(run), *of_kind(run, ManualStep)], key=lambda one: one.serial)
    certain = (event for event in backwards(run) if event.failure is None and event.certain)
    return _by_place(
        one for event in certain for one in (*_followed(run, event, updates), *_detached(run, event, updates))
    )


def _by_place(found: Iterable[Stale]) -> dict[Hashable, Stale]:
    by_place: dict[Hashable, Stale] = {}
    for one in found:
        by_place.setdefault(first_divergence(one.event, one.step)[0], one)
    return by_place


def _raising(run: Run, event: Backward) -> Stale | None:
    if diagnose(run, event) is not Diagnosis.STALE or (step := stale_step(run, event)) is None:
        return None
    moved = set(step.optimizer.owned())
    old = [node for node in event.visited if node.serial < step.serial]
    calls = [call for call in calls_in(old) if call.leaves & moved]
    # A network may hold others that its call does not use: ``self(x)`` with a critic beside.
    using = {node.call for node in old if any(leaf in moved for _, _, leaf in node.saved)}
    calls = [call for call in calls if call in using] or calls
    now = [call for call in calls if call.loops == event.loops]
    assert event.failure is not None and event.failure.node is not None
    before = calls if earlier_iteration(event.failure.node, event) is None else []
    return Stale(run, event, step, now or before, Outcome.RAISES)


def _followed(run: Run, event: Backward, updates: list[Update]) -> Iterator[Stale]:
    """What is stale in the graph of a loss."""
    calls = [call for call in calls_in(event.visited) if event.loops[: len(call.loops)] == call.loops]
    for update, outdated in _moved_since(calls, updates, event).items():
        outcome = _outcome(run, event, update, outdated, updates)
        if outcome is not None:
            yield Stale(run, event, update, outdated, outcome)


def _moved_since(
    calls: Iterable[ModuleCall], updates: list[Update], event: Backward
) -> dict[Update, list[ModuleCall]]:
    """The updates after some network calls that moved their weights, each with the calls that it made
    stale."""
    found: dict[Update, list[ModuleCall]] = {}
    for call in calls:
        for update in between(updates, call.serial, event.serial):
            if not call.leaves.isdisjoint(update.consumed):
                found.setdefault(update, []).append(call)
    return found


def _outcome(
    run: Run, event: Backward, update: Update, calls: list[ModuleCall], updates: list[Update]
) -> Outcome | None:
    fused = update.optimizer.fused if isinstance(update, Step) else True
    if fused and any(leaf in update.consumed for node in event.visited for _, _, leaf in node.saved):
        return Outcome.MIXED
    following = next((one for one in between(updates, event.serial) if one.loops == event.loops), None)
    if following is None or fused is None:
        return None
    if isinstance(following, Step) and not ever_finds_gradient(run, following):
        cut = any(undetached(operand) is not None for call in calls for operand, _ in call.operands)
        return Outcome.CUT_OFF if cut and following.without_gradient else None
    return Outcome.OLD if _applied_to_new(event, update, following) else None


def _applied_to_new(event: Backward, update: Update, following: Update) -> bool:
    """Whether weights are moved by a gradient that depends on what they were before an earlier update."""
    for leaf, held in following.consumed.items():
        if leaf not in update.consumed or event not in held or not held[event][0]:
            continue
        old = _behind_leaf(event, leaf, update.serial)
        if any(_nonlinear(node) and any(edge.node in old for edge in node.edges) for node in event.visited):
            return True
    return False


def _behind_leaf(event: Backward, leaf: Leaf, until: int) -> set[Node]:
    """What was computed of a parameter's value before a step, or of that in turn."""
    found: set[Node] = set()
    # Operands are always older than what is computed from them.
    for node in sorted(event.visited, key=lambda node: node.serial):
        first = node.serial < until and any(sure and leaf is one for one, sure, _ in node.leaves)
        if first or any(edge.certain and edge.node in found for edge in node.edges):
            found.add(node)
    return found


def _nonlinear(node: Node) -> bool:
    """Whether the gradient of a node depends on what it is computed of, and not only on data beside that."""
    saved = (storage not in node.data_operands for storage, _, leaf in node.saved if leaf is None)
    return is_loss(operation(node)) or any(saved)


def _detached(run: Run, event: Backward, updates: list[Update]) -> Iterator[Stale]:
    """The terms of a loss that are detached old predictions, made of what the loss is to train."""
    mine = optimizer_of_loss(run, event)
    for value in _constant_terms(event) if mine is not None else ():
        if value.detached_from is None:
            continue
        (node, site), own = value.detached_from, set(mine.owned())  # type: ignore[union-attr]
        call = node.call
        if call is None or not isinstance(site, ast.Call) or undetached(site) is None or call.leaves & own:
            continue
        given = [(t.node, True) for _, value in call.operands for t in tensors_in(value) if t.node]  # type: ignore[arg-type]
        if own.isdisjoint(leaf for n in reachable_nodes(given) for leaf, _, _ in n.leaves):
            continue
        for update in _moved_since([call], updates, event):
            taught = between(backwards(run), call.serial, update.serial)
            if any(node.call is call for backward in taught for node in backward.visited):
                yield Stale(run, event, update, [call], Outcome.DETACHED, site)


def _constant_terms(event: Backward) -> Iterator[Tensor]:
    """What is added to a loss, or subtracted from it, and has no graph."""
    waiting, seen = list(event.roots), set[Node]()
    while waiting:
        node = waiting.pop()
        if node in seen or operation(node) not in (*SUMS, *TOTALS):
            continue
        seen.add(node)
        waiting += [edge.node for edge in node.edges]
        if node.graphless_operand is not None and isinstance(node.graphless_operand[1], Tensor):
            yield node.graphless_operand[1]
