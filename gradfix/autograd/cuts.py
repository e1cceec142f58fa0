"""What has lost its graph on its way into a loss: all of the loss, or a term of it.

Codemods ask this, those that report it and those that would take what was computed for an evaluation.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from gradfix.autograd.entries import SUMS, operation, summands, sums_in
from gradfix.autograd.graph import Backward, Cut, Event, Leaf, Node, OptimizerState, Step, reach, unseen
from gradfix.autograd.questions import backwards, between, steps
from gradfix.autograd.run import Run
from gradfix.autograd.values import Opaque, Tensor


@dataclass(eq=False)
class Graphless:
    """A backward of a loss that has lost its graph: no parameter gets anything of it."""

    run: Run
    backward: Backward
    cuts: list[Cut]
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
        if not event.accumulates or not event.certain or event.caught or event.seeded:
            continue
        leaves: list[Leaf] = []
        cuts = [event.lost] if event.lost is not None else []
        if event.failure is None:
            leaves = list(event.reached)
            if not known or not owned.isdisjoint(leaves) or not asked.isdisjoint(leaves):
                continue
            cuts = [leaf.lost for leaf in leaves if leaf.lost is not None]
            if len(cuts) < len(leaves) or any(map(unseen, event.visited)):
                continue
        elif event.failure.kind != "E3":
            continue
        if not cuts or not all(_of_parameters(cut, owned) for cut in cuts):
            continue
        step = next((s for s in between(steps(run), event.serial) if same_loop(s, event)), None)
        if step is not None or event.failure is not None:
            found[event.site] = Graphless(run, event, list(dict.fromkeys(cuts)), leaves, step)
    return found


def same_loop(step: Step, event: Event) -> bool:
    """Whether a step is made in the pass of an event, or in a loop around it."""
    return event.path[: len(step.path)] == step.path


def _of_parameters(cut: Cut, owned: set[Leaf]) -> bool:
    """Whether what lost its graph certainly depended on a parameter."""
    if isinstance(cut.graph, Leaf):
        leaves = [cut.graph]
    else:
        behind = reach([(cut.graph, True)])
        leaves = [leaf for node, sure in behind.items() if sure for leaf, known, _ in node.leaves if known]
    return any(leaf.requires is True and (leaf in owned or leaf.label != "tensor") for leaf in leaves)


@dataclass(eq=False)
class Constant:
    """A term of a loss that has lost its graph."""

    run: Run
    backward: Backward
    whole: Node
    """The sum that has it in it."""
    cut: Cut
    optimizer: OptimizerState
    """What the loss trains of the parameters that the term was computed of."""


def constants(run: Run) -> dict[Hashable, Constant]:
    """By the places of the loss and of what cuts the term off."""
    if not run.cuts:
        return {}
    trained: dict[Backward, dict[Leaf, OptimizerState]] = {}
    for step in steps(run):
        for leaf, held in step.consumed.items():
            for backward, (sure, _) in held.items():
                if sure:
                    trained.setdefault(backward, {}).setdefault(leaf, step.optimizer)
    walked = {node for b in backwards(run) if b.accumulates for node in b.visited}
    known = walked | run.escaped_since(-1) | set(reach([(node, True) for node in run.returned]))
    found: dict[Hashable, Constant] = {}
    for backward, taken in trained.items():
        if not backward.path or not backward.certain or backward.failure is not None:
            continue
        for whole in sums_in(backward):
            cut = _constant_beside(whole)
            if cut is None or not (of_gradient(cut) or known.isdisjoint(_terms(cut))):
                continue
            optimizer = next((taken[leaf] for leaf in _behind(cut) if leaf in taken), None)
            if optimizer is not None:
                one = Constant(run, backward, whole, cut, optimizer)
                found[backward.site, cut.site] = one
    return found


def _constant_beside(whole: Node) -> Cut | None:
    """Where the term of a sum has lost its graph that is a constant of it, if it had one."""
    if whole.beside is None or operation(whole) not in SUMS:
        return None
    value = whole.beside[1]
    if isinstance(value, Tensor) and (value.requires is not False or value.leaf is not None):
        return None
    return value.lost if isinstance(value, (Tensor, Opaque)) and whole.path == _path(value.lost) else None


def _terms(cut: Cut) -> list[Node]:
    """What lost its graph, and what it is a sum of."""
    return [cut.graph, *summands(cut.graph)] if isinstance(cut.graph, Node) else []


def _path(cut: Cut | None) -> object:
    return cut.graph.path if cut is not None and isinstance(cut.graph, Node) else None


def _behind(cut: Cut) -> Iterator[Leaf]:
    """The parameters that a term certainly was computed of."""
    if isinstance(cut.graph, Node):
        for node, sure in reach([(cut.graph, True)]).items():
            yield from (leaf for leaf, known, _ in node.leaves if sure and known and leaf.requires is True)


def of_gradient(cut: Cut) -> bool:
    """Whether the graph ends because a gradient was computed without one."""
    site = cut.site
    return (
        isinstance(site, ast.Call)
        and isinstance(site.func, (ast.Attribute, ast.Name))
        and _name(site) == "grad"
    )


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def cut_off(run: Run) -> set[Node]:
    """Every node that a loss was to lead to, and does not as it has lost its graph."""
    if not run.cuts:
        return set()
    cuts = [cut for loss in graphless(run).values() for cut in loss.cuts]
    cuts += [term.cut for term in constants(run).values()]
    return set(reach([(cut.graph, True) for cut in cuts if isinstance(cut.graph, Node)]))
