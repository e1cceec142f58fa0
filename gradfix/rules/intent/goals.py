"""What a loss holds the output of a network to: a low value, a high one, or one number.

A discriminator's loss holds what it says of real data to one thing, and what it says of the generator's to
another; the generator's loss holds the same output to the former. What rebuilds its input is held to a low or
a high distance from it (an energy-based GAN). So it is told which of two losses fools a
network, and is not meant to train it, whatever the order of backwards and steps is. What compares an output
with labels from data holds it to nothing of that kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gradfix.autograd.graph import Backward, Edge, ModuleCall, Node
from gradfix.autograd.model_ledger import SCALES, operation
from gradfix.autograd.values import Value, tensors_in

Goal = Literal["low", "high"] | float
"""Whether a loss falls with an output or rises with it, or the number that it is to be."""

RISING = frozenset(
    """mean sum stack cat squeeze unsqueeze view reshape flatten getitem select index_select contiguous float
    log exp sigmoid logsigmoid tanh relu softplus clamp clamp_min clamp_max leaky_relu nn.Sigmoid
    nn.LogSigmoid nn.ReLU nn.Softplus nn.LeakyReLU nn.Tanh max min minimum maximum add""".split()
)
"""Operations whose result never falls with an operand."""
PROBABILITIES = frozenset(
    """binary_cross_entropy binary_cross_entropy_with_logits nn.BCELoss nn.BCEWithLogitsLoss""".split()
)
"""Losses that are least where a value is near its target, of 0 or 1."""
DISTANCES = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss nn.MSELoss nn.L1Loss nn.SmoothL1Loss nn.HuberLoss".split()
)
SQUARES = frozenset("pow binary.Pow square abs".split())
"""Operations that are least at zero."""


@dataclass(frozen=True)
class Held:
    """A call of a network whose output a loss holds to a goal."""

    call: ModuleCall
    goal: Goal


def goals(event: Backward) -> Iterator[Held]:
    """The calls of networks that a loss leads to first, with what it holds their outputs to, if that is
    known."""
    waiting: list[tuple[Node, bool, float | None]] = [(root, True, None) for root in event.roots]
    seen: set[tuple[Node, bool, float | None]] = set()
    while waiting and not event.has_vector:
        state = waiting.pop()
        node, rising, target = state
        if state in seen:
            continue
        seen.add(state)
        if node.call is not None and node.call.leaves:
            yield Held(node.call, target if target is not None else "low" if rising else "high")
            continue
        rebuilding = _rebuilding(node) if target is None else None
        if rebuilding is not None:
            yield Held(rebuilding, "low" if rising else "high")
        for place, edge in enumerate(node.edges):
            waiting += _below(node, place, edge, rising, target)


def _rebuilding(node: Node) -> ModuleCall | None:
    """The call of a network whose result is compared with what it was given, if a node is the distance."""
    if operation(node) in SQUARES and len(node.edges) == 1:
        node = node.edges[0].node
        if operation(node).removeprefix("binary.").lower() != "sub":
            return None
    elif operation(node) not in DISTANCES:
        return None
    other = node.graphless_operand[1] if node.graphless_operand is not None else None
    for call in (edge.node.call for edge in node.edges if edge.certain):
        given = [value for _, value in call.operands if isinstance(value, Value)] if call else []
        with_graph = {tensor.node for value in given for tensor in tensors_in(value)}
        if any(value is other for value in given) or any(edge.node in with_graph for edge in node.edges):
            return call
    return None


def _below(
    node: Node, place: int, edge: Edge, rising: bool, target: float | None
) -> Iterator[tuple[Node, bool, float | None]]:
    """What a goal of a result means for one of its operands; nothing if that is not known."""
    name, alone = operation(node), len(node.edges) == 1
    base = name.removeprefix("binary.").removeprefix("augmented.").lower()
    if node.leaves or not edge.certain or (target is not None and name not in RISING - {"log", "exp"}):
        return
    if name in PROBABILITIES:
        # A label that says yes or no, if not with certainty (0.9 for real).
        if alone and rising and node.goal is not None and 0 <= node.goal <= 1 and node.goal != 0.5:
            yield edge.node, node.goal < 0.5, None
    elif name in DISTANCES:
        if alone and rising and node.goal is not None:
            yield edge.node, True, node.goal
    elif name in SQUARES:
        if rising and alone:
            yield from _squared(edge.node)
    elif base == "neg":
        yield edge.node, not rising, target
    elif base == "add":
        yield edge.node, rising, target
    elif base == "sub":
        first = node.graphless_operand[0] == 1 if alone and node.graphless_operand is not None else place == 0
        yield edge.node, rising if first else not rising, target
    elif name in SCALES and alone and node.goal:
        yield edge.node, rising if node.goal > 0 else not rising, target
    elif name in RISING:
        yield edge.node, rising, target


def _squared(node: Node) -> Iterator[tuple[Node, bool, float | None]]:
    """What a square that is to be small means: ``(x - 1) ** 2`` holds ``x`` to 1."""
    name = operation(node).removeprefix("binary.").lower()
    if name == "sub" and len(node.edges) == 1 and node.goal is not None:
        yield node.edges[0].node, True, node.goal
    elif name == "add" and len(node.edges) == 1 and node.goal is not None:
        yield node.edges[0].node, True, -node.goal


def contrary(one: Goal, other: Goal) -> bool:
    """Whether an output cannot come nearer to one goal without leaving the other."""
    return one != other and isinstance(one, str) == isinstance(other, str)
