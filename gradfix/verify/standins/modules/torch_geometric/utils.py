"""What is computed of edges."""

from __future__ import annotations

from typing import Any

import torch

from ...inert import others


def nodes(edge_index: torch.Tensor, num_nodes: Any = None) -> int:
    """How many nodes there are."""
    return int(edge_index.max()) + 1 if num_nodes is None else int(num_nodes)


def degree(index: torch.Tensor, num_nodes: Any = None, dtype: Any = None) -> torch.Tensor:
    """How often each number occurs."""
    ones = torch.ones(len(index), dtype=dtype or torch.float32, device=index.device)
    return ones.new_zeros(nodes(index, num_nodes)).scatter_add_(0, index, ones)


def add_self_loops(
    edge_index: torch.Tensor, edge_attr: Any = None, fill_value: float = 1.0, num_nodes: Any = None
) -> Any:
    """An edge from each node to itself."""
    count = nodes(edge_index, num_nodes)
    loops = torch.arange(count, device=edge_index.device).expand(2, -1)
    if edge_attr is not None:
        edge_attr = torch.cat([edge_attr, edge_attr.new_full((count, *edge_attr.shape[1:]), fill_value)])
    return torch.cat([edge_index, loops], 1), edge_attr


def remove_self_loops(edge_index: torch.Tensor, edge_attr: Any = None) -> Any:
    """No edge from a node to itself."""
    kept = edge_index[0] != edge_index[1]
    return edge_index[:, kept], None if edge_attr is None else edge_attr[kept]


def to_dense_adj(edge_index: torch.Tensor, batch: Any = None, *args: Any, **kwargs: Any) -> torch.Tensor:
    """A square of zeros and ones, of one graph."""
    if batch is not None and int(batch.max()) > 0:
        raise NotImplementedError("several graphs")
    count = nodes(edge_index, kwargs.get("max_num_nodes") or (None if batch is None else len(batch)))
    dense = torch.zeros(count * count, device=edge_index.device)
    ones = torch.ones(edge_index.shape[1], device=edge_index.device)
    return dense.scatter_add_(0, edge_index[0] * count + edge_index[1], ones).reshape(1, count, count)


def scatter(
    src: torch.Tensor, index: torch.Tensor, dim: int = 0, dim_size: Any = None, reduce: str = "sum"
) -> torch.Tensor:
    """The values of each number together."""
    size = nodes(index, dim_size)
    where = index.reshape([-1 if place == dim % src.dim() else 1 for place in range(src.dim())]).expand_as(
        src
    )
    shape = [*src.shape]
    shape[dim] = size
    if reduce in ("sum", "add"):
        return src.new_zeros(shape).scatter_add_(dim, where, src)
    if reduce == "mean":
        count = degree(index, size, src.dtype).clamp(min=1)
        count = count.reshape([-1 if place == dim % src.dim() else 1 for place in range(src.dim())])
        return src.new_zeros(shape).scatter_add_(dim, where, src) / count
    how = {"max": "amax", "min": "amin", "mul": "prod"}[reduce]
    return src.new_zeros(shape).scatter_reduce_(dim, where, src, how, include_self=False)


def softmax(src: torch.Tensor, index: torch.Tensor, ptr: Any = None, num_nodes: Any = None) -> torch.Tensor:
    """The softmax among the values of each number."""
    size = nodes(index, num_nodes)
    top = scatter(src.detach(), index, 0, size, "max")
    out: torch.Tensor = (src - top.index_select(0, index)).exp()
    sums = scatter(out, index, 0, size) + 1e-16
    found: torch.Tensor = out / sums.index_select(0, index)
    return found


def to_undirected(edge_index: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Each edge in both directions, once."""
    found: torch.Tensor = torch.unique(torch.cat([edge_index, edge_index.flip(0)], 1), dim=1)
    return found


def from_scipy_sparse_matrix(A: Any) -> Any:
    """The edges of a matrix, and its values."""
    found = A.tocoo()
    places = torch.stack([torch.as_tensor(one).long() for one in (found.row, found.col)])
    return places, torch.as_tensor(found.data)


__getattr__ = others(__name__)
