"""Losses that compare a prediction with a target, and train the target."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradfix.autograd.entries import SCALES, operation
from gradfix.autograd.graph import Backward, Edge, ModuleCall, Node
from gradfix.autograd.questions import calls_in, owner
from gradfix.autograd.run import Run
from gradfix.autograd.values import Tensor, Value, tensors_in

DISTANCES = frozenset(
    """binary.Sub sub mse_loss smooth_l1_loss huber_loss l1_loss nn.MSELoss nn.SmoothL1Loss nn.HuberLoss
    nn.L1Loss""".split()
)
"""What compares two tensors, whichever comes first."""
ADDITIONS = frozenset("binary.Add binary.Sub augmented.Add augmented.Sub add sub".split())
PICKING = frozenset(
    """squeeze unsqueeze view reshape flatten getitem gather index_select select sum
    mean""".split()
)
"""What leaves a prediction one, but for its shape: the value of the action that was taken."""


@dataclass(frozen=True)
class TrainedTarget:
    """A loss that trains the target of a prediction: the same network's word, discounted."""

    run: Run
    backward: Backward
    detached: ast.Call | None
    """The detach of the prediction, if it is detached: then only the target leads to the network."""
    target: ast.expr
    call: ModuleCall
    """The network's, of which the target is made."""


def trained_target(run: Run, event: Backward) -> TrainedTarget | None:
    """The target that a loss trains, beside its prediction or instead of it."""
    mine = owner(run, event)
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


def _compared(node: Node, target: int) -> tuple[ModuleCall | None, ast.Call | None]:
    """The call whose result is compared with one of the operands, and the detach of that result, if any."""
    if len(node.edges) == 2:
        return _predicted(node.edges[1 - target].node), None
    cut = getattr(node.beside[1], "cut", None) if node.beside is not None else None
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
    added = scaled = False
    while node.call is None:
        if len(node.edges) != 1 or node.leaves:
            return None
        with_data = node.beside is not None and isinstance(node.beside[1], Value)
        added = added or (with_data and operation(node) in ADDITIONS)
        scaled = scaled or (with_data and operation(node) in SCALES)
        node = node.edges[0].node
    return node.call if added and scaled else None


def _has_graph(operand: tuple[ast.expr, object]) -> bool:
    value = operand[1]
    assert isinstance(value, Value)
    return any(isinstance(t, Tensor) and t.node is not None for t in tensors_in(value))
