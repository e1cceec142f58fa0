"""Which networks compute something different in evaluation mode (tried with torch 2.13)."""

from __future__ import annotations

import ast

from gradfix.autograd.values import Const, Instance, Module, Sequence, Unknown, Value
from gradfix.core.syntax import walk

NORMALISING = frozenset(
    f"torch.nn.{lazy}{name}"
    for lazy in ("", "Lazy")
    for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
)
"""Layers that take their running statistics for those of the batch."""
DROPPING = frozenset(
    f"torch.nn.{name}"
    for name in """Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout Transformer
    TransformerEncoderLayer TransformerDecoderLayer RReLU""".split()
)
"""Layers that draw at random, unless they are told otherwise."""


def depends_on_mode(network: object) -> bool:
    """Whether a network has a layer that depends on the mode, or a part that may be anything."""
    return _depends(network, set()) if isinstance(network, Module) else True


def _depends(network: Module, seen: set[int]) -> bool:
    if id(network) in seen:
        return False
    seen.add(id(network))
    if network.kind in NORMALISING:
        return True
    if network.kind in DROPPING:
        probability = network.options.get("p")
        return not (isinstance(probability, Const) and probability.value == 0)
    if network.cls is not None and any(
        isinstance(node, ast.Attribute) and node.attr == "training" for node in walk(network.cls.node)
    ):
        return True
    return any(_part_depends(part, seen) for part in [*network.items, *network.attributes.values()])


def _part_depends(part: Value, seen: set[int]) -> bool:
    if isinstance(part, Module):
        return _depends(part, seen)
    if isinstance(part, Unknown):
        return part.leaf is not None
    if isinstance(part, Sequence):
        return any(_part_depends(one, seen) for one in part.items)
    if isinstance(part, Instance):
        return any(_part_depends(one, seen) for one in part.attributes.values())
    return False
