"""Losses that compare a prediction with a target, and train the target."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradfix.autograd.graph import Backward, Edge, ModuleCall, Node, Step, reachable_nodes
from gradfix.autograd.model_ledger import SCALES, operation
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, calls_in, first_step, passing_gradient_to
from gradfix.autograd.values import Tensor, Value, tensors_in
from gradfix.rules.intent.purpose import meant_for

DISTANCES = frozenset(
    """binary.Sub sub mse_loss smooth_l1_loss huber_loss l1_loss nn.MSELoss nn.SmoothL1Loss nn.HuberLoss
    nn.L1Loss""".split()
)
"""What compares two tensors, whichever comes first."""
CRITERIA = frozenset(
    """kl_div mse_loss smooth_l1_loss huber_loss l1_loss cross_entropy binary_cross_entropy nn.KLDivLoss
    binary_cross_entropy_with_logits nn.MSELoss nn.SmoothL1Loss nn.HuberLoss nn.L1Loss nn.CrossEntropyLoss
    nn.BCELoss nn.BCEWithLogitsLoss""".split()
)
"""Losses that take a prediction first, and its target second."""
ADDITIONS = frozenset("binary.Add binary.Sub augmented.Add augmented.Sub add sub".split())
LEAST = frozenset("min max minimum maximum amin amax stack cat".split())
"""Operations that combine several networks' estimates of one quantity."""
PICKING = frozenset(
    """squeeze unsqueeze view reshape flatten getitem gather index_select select sum
    mean""".split()
)
"""Operations after which a prediction is still one in another shape: the value of the chosen action."""

LIKELIHOODS = frozenset(
    """log_prob log_softmax logsigmoid log nn.LogSoftmax nn.LogSigmoid cross_entropy nll_loss
    binary_cross_entropy_with_logits nn.CrossEntropyLoss nn.NLLLoss""".split()
)
"""What computes the logarithm of a likelihood, or its negative."""
OF_A_DISTRIBUTION = frozenset({"log_prob"})
"""Those of them that a distribution computes, from which something is drawn as a rule."""
_THROUGH = frozenset(
    """neg exp clamp clamp_min clamp_max min max minimum maximum cat stack unbind permute transpose
    binary.Mult binary.Div mul div to float double contiguous""".split()
)
THROUGH = _THROUGH | PICKING | ADDITIONS
"""What a likelihood goes through and is one still, or the ratio of two."""
CHOOSING = frozenset("gather max amax take_along_dim index_select argmax".split())
"""What picks the values of actions out of those of all."""


def likelihood(node: Node, known: frozenset[str] = LIKELIHOODS) -> bool:
    """Whether a value is the logarithm of a likelihood, a sum of such, or a ratio of likelihoods."""
    waiting, seen = [node], set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        if operation(at) in known:
            return True
        if not at.leaves and operation(at) in THROUGH:
            waiting += [edge.node for edge in at.edges]
    return False


@dataclass(frozen=True)
class TrainedTarget:
    """A loss that trains the target of a prediction: the same network's discounted estimate."""

    run: Run
    backward: Backward
    detached: ast.Call | None
    """The detach of the prediction, if it is detached: then only the target leads to the network."""
    target: ast.expr
    call: ModuleCall
    """The network's, of which the target is made."""


def trained_target(run: Run, event: Backward) -> TrainedTarget | None:
    """The target that a loss trains, beside its prediction or instead of it."""
    mine = meant_for(run, event)
    if mine is None or not event.certain or not event.accumulates or event.failure is not None:
        return None
    own = set(mine.owned())
    taught = [call for call in calls_in(event.visited) if call.leaves & own]
    if not taught:
        return None
    for node in event.visited:
        if operation(node) not in DISTANCES:
            continue
        for number, edge in enumerate(node.edges):
            target = _discounted(edge.node)
            if target is None or target not in taught:
                continue
            prediction, cut = _compared(node, number)
            if prediction is None or prediction is target or prediction.module is not target.module:
                continue
            if any(map(_has_graph, prediction.operands)) or (cut is not None and taught != [target]):
                continue
            written = _written(edge)
            if written is not None:
                return TrainedTarget(run, event, cut, written, target)
    return None


def bootstrapped(one: TrainedTarget) -> bool:
    """Whether anything says that a target is an estimate which goes on from another one.

    An equation that a network is to solve, and embeddings that are to lie apart by a given difference, look
    the same, and train both sides by right. An estimate of what is to come is used for something: it
    chooses actions, or another optimizer's loss goes through it, or is one of likelihoods.
    """
    if one.detached is not None:
        return True
    mine = meant_for(one.run, one.backward)
    if any(operation(node) in CHOOSING for node in one.backward.visited):
        return True
    return any(
        operation(node) in OF_A_DISTRIBUTION
        or (node.call is not None and node.call.module is one.call.module)
        for other in backwards(one.run)
        if other.certain and meant_for(one.run, other) is not mine
        for node in other.visited
    ) or any(operation(node) in OF_A_DISTRIBUTION for node in one.backward.visited)


@dataclass(frozen=True)
class TrainedTeacher:
    """A loss that trains a network in eval mode, whose results are the target of another one's."""

    run: Run
    backward: Backward
    step: Step
    call: ModuleCall
    """The teacher's."""


def trained_teacher(run: Run, event: Backward) -> TrainedTeacher | None:
    """The teacher that a step moves, if it certainly is one: no loss reaches it but as a target.

    Networks that learn from each other are all in training mode, and one that is in eval mode for the sake of
    its statistics predicts something, too.
    """
    if not event.certain or not event.accumulates or event.failure is not None:
        return None
    for node in event.visited:
        if operation(node) not in CRITERIA or len(node.edges) != 2 or not all(e.certain for e in node.edges):
            continue
        predicted, target = (set(reachable_nodes([(edge.node, True)])) for edge in node.edges)
        pupils, teachers = calls_in(predicted), calls_in(target)
        taught = {leaf for call in teachers for leaf in call.leaves}
        modes = {call.training for call in teachers}, {call.training for call in pupils}
        if modes != ({False}, {True}) or not taught or not predicted.isdisjoint(target):
            continue
        if not passing_gradient_to(event.visited, taught) <= target or _predicts(event, target):
            continue
        if any(b.site is not event.site and not taught.isdisjoint(b.reached) for b in backwards(run)):
            continue
        step = first_step(run, event)
        if step is None or step.doubtful or not step.optimizer.groups_known:
            continue
        if all(step.consumed.get(leaf, {}).get(event, (False,))[0] for leaf in taught):
            return TrainedTeacher(run, event, step, teachers[0])
    return None


def _predicts(event: Backward, values: set[Node]) -> bool:
    """Whether a loss uses some values otherwise than as targets."""
    outside = event.visited.keys() - values
    return any(
        edge.node in values and (operation(node) not in CRITERIA or place != 1)
        for node in outside
        for place, edge in enumerate(node.edges)
    )


def _compared(node: Node, target: int) -> tuple[ModuleCall | None, ast.Call | None]:
    """The call whose result is compared with one of the operands, and the detach of that result, if any."""
    if len(node.edges) == 2:
        return _predicted(node.edges[1 - target].node), None
    cut = (
        getattr(node.graphless_operand[1], "detached_from", None)
        if node.graphless_operand is not None
        else None
    )
    if len(node.edges) != 1 or cut is None or not isinstance(cut[1], ast.Call):
        return None, None
    return _predicted(cut[0]), cut[1]


def _written(edge: Edge | None) -> ast.expr | None:
    """How the source calls a target, or the part of it that has the graph: what can be detached in place."""
    while edge is not None and isinstance(edge.operand, (ast.BinOp, ast.UnaryOp)):
        edge = edge.node.edges[0] if len(edge.node.edges) == 1 else None
    return edge.operand if edge is not None else None


def _predicted(node: Node) -> ModuleCall | None:
    """The call of a network that a tensor is the result of, but for its shape."""
    while node.call is None:
        if len(node.edges) != 1 or node.leaves or operation(node) not in PICKING:
            return None
        node = node.edges[0].node
    return node.call


def _discounted(node: Node) -> ModuleCall | None:
    """The call of a network whose result is multiplied, and added to data, if a tensor is made so."""
    calls = _estimates(node)
    return calls.pop() if len(calls) == 1 else None


def _estimates(node: Node) -> set[ModuleCall]:
    """The calls of networks whose results, or the least of them, are multiplied and added to data."""
    found: set[ModuleCall] = set()
    waiting = [(node, False, False)]
    while waiting:
        at, added, scaled = waiting.pop()
        if at.call is not None:
            if not (added and scaled):
                return set()
            found.add(at.call)
            continue
        if at.leaves or not at.edges or (len(at.edges) > 1 and operation(at) not in LEAST):
            return set()
        with_data = at.graphless_operand is not None and isinstance(at.graphless_operand[1], Value)
        added = added or (with_data and operation(at) in ADDITIONS)
        scaled = scaled or (with_data and operation(at) in SCALES)
        waiting += [(edge.node, added, scaled) for edge in at.edges]
    return found


def estimated_targets(event: Backward) -> dict[ast.expr, set[ModuleCall]]:
    """The targets of a loss that are made of several networks' words, discounted; with the calls of these."""
    found: dict[ast.expr, set[ModuleCall]] = {}
    for node in event.visited:
        if operation(node) not in DISTANCES or len(node.edges) != 2:
            continue
        for number, edge in enumerate(node.edges):
            calls, written = _estimates(edge.node), _written(edge)
            prediction = _predicted(node.edges[1 - number].node) if calls else None
            if written is not None and prediction is not None and prediction not in calls:
                found[written] = calls
    return found


def _has_graph(operand: tuple[ast.expr, object]) -> bool:
    value = operand[1]
    assert isinstance(value, Value)
    return any(isinstance(t, Tensor) and t.node is not None for t in tensors_in(value))
