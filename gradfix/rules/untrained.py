"""Parameters that training code uses and that nobody trains.

The rule says that each parameter of an optimizer gets each loss that is meant for it, and that each loss
reaches somebody. Here is what breaks that for a *part* of what an optimizer owns, while it trains the rest:

* *owned and not reached*: the part is run in the loop, and no backward ever gives it a gradient, because the
  only loss that is computed with it is never backpropagated, or because the graph ends on the way;
* *reached and not owned*: a network's forward uses layers that it has not registered (in a plain list), so
  that ``parameters()`` does not have them.

What is never run is no mistake (a head for another task), nor is a result that is used for its value.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gradfix.autograd.cuts import leaves_behind
from gradfix.autograd.graph import (
    Backward,
    GraphEnd,
    Leaf,
    ModuleCall,
    Node,
    OptimizerState,
    Step,
    reachable_nodes,
)
from gradfix.autograd.model_ledger import operation
from gradfix.autograd.operators import is_loss
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, calls_in, steps, touched, unreached, walked_by_any
from gradfix.autograd.values import Mapping, Module, Sequence, Tensor, Unknown, Value
from gradfix.rules.targets import DISTANCES, LIKELIHOODS, THROUGH

NEVER_OWNED = "tensor"
"""The label of a leaf that is no layer's parameter."""
_MEASURES = THROUGH | {"pow", "square", "abs", "binary.Pow", "sqrt", "norm", "log", "exp"}


@dataclass(eq=False)
class Untrained:
    """A network that an optimizer owns, beside others that it trains, and that no loss ever reaches."""

    run: Run
    call: ModuleCall
    step: Step
    """The step that finds no gradient for it."""
    loss: Node | None = None
    """What is computed with it and compared with something, and is never backpropagated."""
    cut: GraphEnd | None = None
    """Where the graph ends on the way from a loss to it."""
    backward: Backward | None = None
    """The backward of that loss."""


def untrained(run: Run) -> Iterator[Untrained]:
    """The networks in a loop that an optimizer owns and no backward reaches, and what shows that one should.

    The optimizer trains others: one that trains nobody is for step-without-gradients.
    """
    busy = {step.optimizer for step in steps(run) if step.consumed}
    owners = {leaf: state for leaf, state in unreached(run).items() if state in busy}
    recorded = {node.call for node in run.nodes} if owners else set()
    lost = lost_losses(run) if owners else []
    for call in run.module_calls:
        found = {owners.get(leaf) for leaf in call.leaves}
        owner = found.pop() if len(found) == 1 and call in recorded else None
        step = _step_around(call, owner) if owner is not None else None
        if step is not None:
            yield from _because(run, call, step, lost)


def _step_around(call: ModuleCall, owner: OptimizerState) -> Step | None:
    """The first step of an optimizer in the iteration of a call, if all of its steps are known."""
    if any(step.doubtful for step in owner.steps):
        return None
    return next((s for s in owner.steps if s.loops and call.loops[: len(s.loops)] == s.loops), None)


def _because(run: Run, call: ModuleCall, step: Step, lost: list[Node]) -> Iterator[Untrained]:
    """What shows that a network was to be trained: a loss of it that is lost, or one that is cut off."""
    for backward in backwards(run):
        if backward.accumulates and backward.loops[: len(step.loops)] == step.loops:
            for cut in cuts_into(backward):
                if not call.leaves.isdisjoint(behind(cut)):
                    yield Untrained(run, call, step, cut=cut, backward=backward)
                    return
    loss = next((node for node in lost if call in calls_in(reachable_nodes([(node, True)]))), None)
    if loss is not None and loss.loops[: len(step.loops)] == step.loops:
        yield Untrained(run, call, step, loss=loss)


def trained_elsewhere(program: Program, optimizer: OptimizerState, leaves: Collection[Leaf]) -> bool:
    """Whether in any run, of any entry point, a loss reaches one of these parameters of an optimizer.

    Optimizers of several runs are one if they are made at one place, and own their parameters in one order.
    """
    numbers = {number for number, leaf in enumerate(optimizer.owned()) if leaf in leaves}
    for run in (run for entry in program.entry_points for run in entry.all_runs()):
        same = (o.state for o in run.optimizers if o.state.created is optimizer.created)
        mine = {leaf for state in same for k, leaf in enumerate(state.owned()) if k in numbers}
        if any(not mine.isdisjoint(backward.reached) for backward in backwards(run)):
            return True
    return False


def cuts_into(backward: Backward) -> Iterator[GraphEnd]:
    """Where the graphs of what a loss is computed from have ended: arguments of networks, other operands."""
    for call in calls_in(backward.visited):
        for _, value in call.operands:
            if isinstance(value, (Tensor, Unknown)) and value.requires is False and value.lost is not None:
                yield value.lost
    for node in backward.visited:
        value = node.graphless_operand[1] if node.graphless_operand is not None else None
        if isinstance(value, (Tensor, Unknown)) and value.lost is not None:
            yield value.lost


def behind(cut: GraphEnd) -> set[Leaf]:
    """The parameters that what has lost its graph certainly was computed from."""
    if isinstance(cut.graph, Node):
        return set(leaves_behind(cut))
    return {cut.graph} if cut.graph.requires is True else set()


def lost_losses(run: Run) -> list[Node]:
    """Losses that are computed with a graph and that nobody differentiates, returns or hands on."""
    return [node for node in _ends(run) if _compares(node)]


class LostPenalty(NamedTuple):
    """What is computed from a gradient that has been given a graph for it, and is never backpropagated."""

    penalty: Node
    gradient: Node
    backward: Backward
    """The first loss that is backpropagated in the same iteration."""


def lost_penalties(run: Run) -> Iterator[LostPenalty]:
    """The penalties on gradients that nobody backpropagates: ``create_graph=True`` is for nothing else."""
    if all(node.op != "autograd.grad" for node in run.nodes):
        return
    # With ``inputs=``, a loss may be differentiated by ways that were not seen.
    roots = [(root, True) for backward in backwards(run) for root in backward.roots]
    walked = walked_by_any(run).union(reachable_nodes(roots))
    # What one call computes for a backward, another one may compute to be looked at.
    used = {node.site for node in walked if node.op == "autograd.grad"}
    for node in _ends(run):
        below = reachable_nodes([(node, True)])
        gradient = next((n for n in below if n.op == "autograd.grad" and n not in walked), None)
        here = (b for b in backwards(run) if b.accumulates and b.certain and b.loops == node.loops)
        backward = next(here, None)
        if gradient is None or gradient.site in used:
            continue
        if gradient is not node and backward is not None and backward.loops:
            yield LostPenalty(node, gradient, backward)


def _ends(run: Run) -> list[Node]:
    """What is computed with a graph, and then neither used for anything nor differentiated nor handed on."""
    returned = set(reachable_nodes([(node, True) for node in run.returned]))
    known = walked_by_any(run) | run.escaped_since(-1) | returned
    used = {edge.node for node in run.nodes for edge in node.edges}
    return [n for n in run.nodes if n not in used and n not in known and n.call is None]


def _compares(node: Node) -> bool:
    """Whether a value says how far something is from what it should be, or how likely that is."""
    waiting, seen = [node], set[Node]()
    while waiting:
        at = waiting.pop()
        name = operation(at)
        if name in DISTANCES or name in LIKELIHOODS or is_loss(name):
            return True
        if at not in seen and at.call is None and not at.leaves and name in _MEASURES:
            waiting += [edge.node for edge in at.edges]
        seen.add(at)
    return False


# -- layers that are not registered ---------------------------------------------------------------


class Unregistered(NamedTuple):
    """Layers that a network uses and does not own, for they are in a plain list or dict of it."""

    run: Run
    backward: Backward
    call: ModuleCall
    attribute: str
    holder: Module
    """The network, or the part of it, that has the attribute."""
    container: str
    """``list`` or ``dict``."""


def unregistered(run: Run) -> dict[object, Unregistered]:
    """By network and attribute: layers of which a loss computes gradients that no optimizer uses."""
    owned = {leaf for optimizer in run.optimizers for leaf in optimizer.state.owned()}
    if run.external_optimizers or not all(one.state.in_view for one in run.optimizers):
        return {}
    known = owned | touched(run)
    found: dict[object, Unregistered] = {}
    for backward in backwards(run):
        if not backward.certain or not backward.accumulates or backward.failure is not None:
            continue
        stray = {
            leaf
            for leaf, sure in backward.reached.items()
            if sure and leaf not in known and leaf.label != NEVER_OWNED and not leaf.copied
        }
        for call in calls_in(backward.visited) if stray else ():
            if call.leaves.isdisjoint(owned):
                continue  # Nobody trains the network at all: see unused-gradients.
            for holder, name, kind in _in_plain_containers(call.module, stray):
                found.setdefault((holder, name), Unregistered(run, backward, call, name, holder, kind))
    return found


def _in_plain_containers(module: object, stray: set[Leaf]) -> Iterator[tuple[Module, str, str]]:
    """The attributes of a network, and of those in it, that hold such layers in a list or a dict."""
    waiting, seen = [module], set[int]()
    while waiting:
        at = waiting.pop()
        if not isinstance(at, Module) or id(at) in seen:
            continue
        seen.add(id(at))
        for name, value in at.attributes.items():
            if isinstance(value, (Sequence, Mapping)) and not stray.isdisjoint(_layers(value)):
                yield at, name, "list" if isinstance(value, Sequence) else "dict"
        waiting += [*at.attributes.values(), *at.items]


def _layers(value: Value, depth: int = 3) -> Iterator[Leaf]:
    """The parameters of the layers in a container, and in those that it holds."""
    if not isinstance(value, (Sequence, Mapping)) or depth == 0:
        return
    inner = value.items if isinstance(value, Sequence) else list(value.items.values())
    for one in inner:
        if isinstance(one, Module):
            yield from (leaf for top in one.leaves() for leaf in top.family())
        else:
            yield from _layers(one, depth - 1)


def assignments(one: Unregistered) -> Iterator[ast.Assign]:
    """The statements of its class that assign the attribute."""
    cls = one.holder.cls.node if one.holder.cls is not None else None
    for node in ast.walk(cls) if cls is not None else ():
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Attribute) and t.attr == one.attribute for t in targets):
            assert isinstance(node, ast.Assign)
            yield node
