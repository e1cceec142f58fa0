"""Losses, or terms of losses, that were detached from their graph before backward.

Codemods ask this, those that report it and those that would take what was computed for an evaluation.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.graph import (
    Backward,
    GraphEnd,
    Leaf,
    Node,
    OptimizerState,
    Step,
    begins_in_unseen_code,
    reachable_nodes,
)
from gradfix.autograd.model_ledger import SUMS, addends, operation, summands, sums_in
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, between, calls_in, same_iteration, steps, unreached
from gradfix.autograd.values import Tensor, Unknown
from gradfix.core.syntax import last_name


@dataclass(eq=False)
class Graphless:
    """A backward of a loss that has lost its graph: no parameter gets anything of it."""

    run: Run
    backward: Backward
    cuts: list[GraphEnd]
    """Where its graph ended, or each of them."""
    leaves: list[Leaf]
    """What was told to require a gradient in its place."""
    step: Step | None
    """The step that is to consume it, as far as can be told."""


def graphless(run: Run) -> dict[Hashable, Graphless]:
    """By their places: losses that certainly have no graph, and are computed of what certainly had one."""
    found: dict[Hashable, Graphless] = {}
    owned = {leaf for optimizer in run.optimizers for leaf in optimizer.state.owned()}
    known = not any(leaf is None for _, leaf in run.grad_reads)
    asked = {leaf for _, leaf in run.grad_reads} | run.differentiated
    for event in backwards(run):
        if (
            not (event.accumulates or event.failure)
            or not event.certain
            or event.error_expected
            or event.has_vector
        ):
            continue
        leaves: list[Leaf] = []
        cuts = [event.lost] if event.lost is not None else []
        if event.failure is None:
            leaves = list(event.reached)
            if not known or not owned.isdisjoint(leaves) or not asked.isdisjoint(leaves):
                continue
            cuts = [leaf.lost for leaf in leaves if leaf.lost is not None]
            if (
                not leaves
                or any(leaf.doubtful for leaf in leaves)
                or any(map(begins_in_unseen_code, event.visited))
            ):
                continue
            if len(cuts) < len(leaves) and (event.roots or not all(map(_computed, leaves))):
                continue
        elif event.failure.kind != "E3" or not cuts:
            continue
        if not all(_of_parameters(cut, owned) for cut in cuts):
            continue
        step = next((s for s in between(steps(run), event.serial) if same_iteration(event, s)), None)
        if step is not None or event.failure is not None:
            found[event.site] = Graphless(run, event, list(dict.fromkeys(cuts)), leaves, step)
    return found


def _computed(leaf: Leaf) -> bool:
    """Whether what was told to require a gradient is made of something: no number that begins a sum."""
    made = leaf.created
    if isinstance(made, ast.Attribute):
        return True
    if not isinstance(made, ast.Call):
        return False
    given = [*made.args, *(k.value for k in made.keywords if k.arg != "requires_grad")]
    method = isinstance(made.func, ast.Attribute) and made.func.attr == "requires_grad_"
    return method or any(not isinstance(one, ast.Constant) for one in given)


def _of_parameters(cut: GraphEnd, owned: set[Leaf]) -> bool:
    """Whether what lost its graph certainly depended on a parameter."""
    if isinstance(cut.graph, Leaf):
        leaves = [cut.graph]
    else:
        behind = reachable_nodes([(cut.graph, True)])
        leaves = [leaf for node, sure in behind.items() if sure for leaf, known, _ in node.leaves if known]
    return any(leaf.requires is True and (leaf in owned or leaf.label != "tensor") for leaf in leaves)


@dataclass(eq=False)
class DeadTerm:
    """A term of a loss that was computed of what the loss trains, and trains nobody of it."""

    run: Run
    backward: Backward
    term: Node
    """The term, or the sum that has it in it as a constant."""
    cut: GraphEnd
    optimizer: OptimizerState
    """The one that trains, or is to train, the parameters that the term was computed of."""
    given: ast.expr | None = None
    """What a network is given there that is cut off, where that network's own gradients are for nobody."""


def dead_terms(run: Run) -> dict[Hashable, DeadTerm]:
    """By the places of the loss and of what cuts the term off."""
    if not run.graphs_ended:
        return {}
    trained: dict[Backward, dict[Leaf, OptimizerState]] = {}
    for step in steps(run):
        for leaf, held in step.consumed.items():
            for backward in held:
                trained.setdefault(backward, {}).setdefault(leaf, step.optimizer)
    losses = [b for b in backwards(run) if b.accumulates]
    walked = {node for b in losses for node in b.visited}
    known = walked | run.escaped_since(-1) | set(reachable_nodes([(node, True) for node in run.returned]))
    untrained = unreached(run)
    found: dict[Hashable, DeadTerm] = {}
    for backward, taken in trained.items():
        if not backward.loops or not backward.certain or backward.failure is not None:
            continue
        dead = [(term, cut, None) for term, cut in _constants(backward, known)]
        for term, cut, given in [*dead, *_for_others(run, backward, taken, losses)]:
            mine = {leaf: state for leaf, state in taken.items() if backward.reached.get(leaf)}
            mine |= {leaf: state for leaf, state in untrained.items() if state in taken.values()}
            optimizer = next((mine[leaf] for leaf in leaves_behind(cut) if leaf in mine), None)
            if optimizer is not None:
                one = DeadTerm(run, backward, term, cut, optimizer, given)
                found[backward.site, cut.site] = one
    return found


def _constants(backward: Backward, known: set[Node]) -> Iterator[tuple[Node, GraphEnd]]:
    """The sums in a loss that have a constant in them, and where that lost its graph."""
    for whole in sums_in(backward):
        cut = _constant_beside(whole)
        if cut is not None and (of_gradient(cut) or cut.compared or known.isdisjoint(_terms(cut))):
            yield whole, cut


def _for_others(
    run: Run, backward: Backward, taken: Collection[Leaf], losses: list[Backward]
) -> Iterator[tuple[Node, GraphEnd, ast.expr]]:
    """The terms of a loss whose gradients nobody consumes, with what a network in them is given cut off."""
    terms = list(addends(backward))
    elsewhere = {node for b in losses if b is not backward for node in b.visited}
    looked_at = {leaf for _, leaf in run.grad_reads}
    for term in terms if len(terms) > 1 else ():
        nodes = reachable_nodes([(term, True)])
        leaves = {leaf for node in nodes for leaf, _, _ in node.leaves if leaf.requires is not False}
        if term in elsewhere or None in looked_at or any(map(begins_in_unseen_code, nodes)):
            continue
        if not leaves or not leaves.isdisjoint({*taken, *looked_at, *run.thawed}):
            continue
        for call in calls_in(nodes):
            for expression, value in call.operands:
                if isinstance(value, Tensor) and value.requires is False and value.lost is not None:
                    yield term, value.lost, expression


def _constant_beside(whole: Node) -> GraphEnd | None:
    """Where the term of a sum has lost its graph that is a constant of it, if it had one."""
    if whole.graphless_operand is None or operation(whole) not in SUMS:
        return None
    value = whole.graphless_operand[1]
    if isinstance(value, Tensor) and (value.requires is not False or value.leaf is not None):
        return None
    return value.lost if isinstance(value, (Tensor, Unknown)) and whole.loops == _path(value.lost) else None


def _terms(cut: GraphEnd) -> list[Node]:
    """What lost its graph, and what it is a sum of."""
    return [cut.graph, *summands(cut.graph)] if isinstance(cut.graph, Node) else []


def _path(cut: GraphEnd | None) -> object:
    return cut.graph.loops if cut is not None and isinstance(cut.graph, Node) else None


def leaves_behind(cut: GraphEnd) -> Iterator[Leaf]:
    """The parameters that a term certainly was computed of."""
    if isinstance(cut.graph, Node):
        for node, sure in reachable_nodes([(cut.graph, True)]).items():
            yield from (leaf for leaf, known, _ in node.leaves if sure and known and leaf.requires is True)


def of_gradient(cut: GraphEnd) -> bool:
    """Whether the graph ends because a gradient was computed without one."""
    return isinstance(cut.site, ast.Call) and last_name(cut.site) == "grad"


def cut_off(run: Run) -> set[Node]:
    """Every node that a loss was to lead to, and does not as it has lost its graph."""
    if not run.graphs_ended:
        return set()
    cuts = [cut for loss in graphless(run).values() for cut in loss.cuts]
    cuts += [term.cut for term in dead_terms(run).values()]
    return set(reachable_nodes([(cut.graph, True) for cut in cuts if isinstance(cut.graph, Node)]))
