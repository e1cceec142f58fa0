"""torch_cluster: which points are near each other."""

from __future__ import annotations

from typing import Any

import torch

from ..inert import others


def _apart(x: torch.Tensor, batch: Any, loop: bool) -> torch.Tensor:
    """How far points are from each other: infinitely those of other graphs."""
    with torch.no_grad():
        points = x.detach().reshape(len(x), -1)
        apart = torch.cdist(points, points)
        if batch is not None:
            apart = apart.masked_fill(batch[:, None] != batch[None], float("inf"))
        return apart if loop else apart.fill_diagonal_(float("inf"))


def _edges(apart: torch.Tensor, count: int, most: float, flow: str) -> torch.Tensor:
    found, near = apart.topk(min(count, len(apart)), largest=False)
    kept = found < most
    center = torch.arange(len(apart), device=apart.device)[:, None].expand_as(near)
    both = [near[kept], center[kept]]
    return torch.stack(both if flow == "source_to_target" else both[::-1])


def knn_graph(
    x: torch.Tensor, k: int, batch: Any = None, loop: bool = False, flow: str = "source_to_target",
    *args: Any, **kwargs: Any,
) -> torch.Tensor:  # fmt: skip
    """An edge to each point from those nearest to it."""
    return _edges(_apart(x, batch, loop), k, float("inf"), flow)


def radius_graph(
    x: torch.Tensor, r: float, batch: Any = None, loop: bool = False, max_num_neighbors: int = 32,
    flow: str = "source_to_target", *args: Any, **kwargs: Any,
) -> torch.Tensor:  # fmt: skip
    """An edge to each point from those within a distance."""
    return _edges(_apart(x, batch, loop), max_num_neighbors, r, flow)


__getattr__ = others(__name__)
