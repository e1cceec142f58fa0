"""Categories of atoms and bonds as vectors: one of each column, added."""

from __future__ import annotations

from typing import Any

import torch

from ....inert import others
from ..utils.features import get_atom_feature_dims, get_bond_feature_dims


def _embeddings(dims: list[int], width: int) -> torch.nn.ModuleList:
    held = torch.nn.ModuleList()
    for size in dims:
        one = torch.nn.Embedding(size, width)
        torch.nn.init.xavier_uniform_(one.weight.data)
        held.append(one)
    return held


def _sum(held: Any, numbers: torch.Tensor) -> Any:
    found: Any = 0
    for column in range(numbers.shape[1]):
        found = found + held[column](numbers[:, column])
    return found


class AtomEncoder(torch.nn.Module):
    """Of an atom."""

    def __init__(self, emb_dim: int, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.atom_embedding_list = _embeddings(get_atom_feature_dims(), emb_dim)

    def forward(self, x: torch.Tensor) -> Any:
        """Of all of them."""
        return _sum(self.atom_embedding_list, x)


class BondEncoder(torch.nn.Module):
    """Of a bond."""

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.bond_embedding_list = _embeddings(get_bond_feature_dims(), emb_dim)

    def forward(self, edge_attr: torch.Tensor) -> Any:
        """Of all of them."""
        return _sum(self.bond_embedding_list, edge_attr)


__getattr__ = others(__name__)
