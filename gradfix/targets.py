"""Losses that compare a prediction with a target, and train the wrong one of the two."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradfix.autograd.entries import SCALES, operation
from gradfix.autograd.graph import Backward, ModuleCall, Node
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
    """squeeze unsqueeze view reshape flatten getitem getitem.int_or_slice gather index_select select sum
    mean""".split()
)
"""What leaves a prediction one, but for its shape: the value of the action that was taken."""


@dataclass(frozen=True)
class TrainedTarget:
    """A loss that reaches a network by way of its target alone, for the prediction is detached."""

    run: Run
    backward: Backward
    detached: ast.Call
    """The detach of the prediction."""
    target: ast.expr
    call: ModuleCall
    """The network's, of which the target is made."""


def trained_target(run: Run, event: Backward) -> TrainedTarget | None:
    """The target that a loss trains instead of its prediction: the same network's word, discounted."""
    mine = owner(run, event)
    if mine is None or not event.certain or not event.accumulates or event.failure is not None:
        return None
    own = set(mine.owned())
    taught = [call for call in calls_in(event.visited) if call.leaves & own]
    for node in event.visited:
        if operation(node) not in DISTANCES or len(node.edges) != 1 or node.beside is None:
            continue
        cut = getattr(node.beside[1], "cut", None)
        target, written = _discounted(node.edges[0].node), node.edges[0].operand
        if cut is None or target is None or written is None or taught != [target]:
            continue
        prediction = _predicted(cut[0])
        if prediction is None or prediction is target or prediction.module is not target.module:
            continue
        if isinstance(cut[1], ast.Call) and not any(map(_has_graph, prediction.operands)):
            return TrainedTarget(run, event, cut[1], written, target)
    return None


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
