"""Layers over graphs, with the parameters of the real ones and what they compute."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import torch
import torch.nn.functional as functional

from ...inert import others
from ..torch_cluster import knn_graph as knn_graph
from ..torch_cluster import radius_graph as radius_graph
from .utils import add_self_loops, remove_self_loops, scatter, softmax


def glorot(weight: torch.Tensor) -> None:
    """The first values of a weight."""
    bound = (6.0 / (weight.size(-2) + weight.size(-1))) ** 0.5
    torch.nn.init.uniform_(weight, -bound, bound)


class MessagePassing(torch.nn.Module):
    """What nodes tell each other over edges, put together at each node."""

    def __init__(
        self, aggr: Any = "add", *args: Any, flow: str = "source_to_target", node_dim: int = -2, **kwargs: Any
    ) -> None:
        super().__init__()
        self.aggr, self.flow, self.node_dim = aggr, flow, node_dim

    def propagate(self, edge_index: Any, size: Any = None, **given: Any) -> Any:
        """Tell, put together, and change."""
        told, heard = (0, 1) if self.flow == "source_to_target" else (1, 0)
        index = edge_index[heard]
        held: Any = next(value for value in given.values() if isinstance(value, (torch.Tensor, tuple)))
        last = held[-1] if isinstance(held, tuple) else held
        count = size[heard] if size is not None and size[heard] is not None else last.size(self.place(last))
        known = {"edge_index": edge_index, "index": index, "size": size, "ptr": None, "dim_size": count}
        known.update(size_i=count, size_j=count)
        messages = self.message(**self.wanted(self.message, given, known, edge_index[told], index))
        out = self.aggregate(
            messages, **self.wanted(self.aggregate, given, known, edge_index[told], index, skip=1)
        )
        return self.update(out, **self.wanted(self.update, given, known, edge_index[told], index, skip=1))

    def place(self, value: torch.Tensor) -> int:
        """The dimension of nodes."""
        return self.node_dim if value.dim() >= -self.node_dim else 0

    def wanted(
        self, method: Any, given: Any, known: Any, told: Any, heard: Any, skip: int = 0
    ) -> dict[str, Any]:
        """The arguments that a method asks for: ``x_j`` of who tells, ``x_i`` of who hears."""
        found: dict[str, Any] = {}
        for one in list(inspect.signature(method).parameters.values())[skip:]:
            name, end = one.name[:-2], one.name[-2:]
            if one.name in given:
                found[one.name] = given[one.name]
            elif one.name in known:
                found[one.name] = known[one.name]
            elif end in ("_i", "_j") and name in given:
                value = given[name]
                side = (0, told) if end == "_j" else (1, heard)
                value = value[side[0]] if isinstance(value, (tuple, list)) else value
                found[one.name] = None if value is None else value.index_select(self.place(value), side[1])
            elif one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD:
                raise TypeError("nothing is given for " + one.name)
        return found

    def message(self, x_j: torch.Tensor) -> torch.Tensor:
        """What a node is."""
        return x_j

    def aggregate(self, inputs: torch.Tensor, index: torch.Tensor, dim_size: Any = None) -> torch.Tensor:
        """Together, as ``aggr`` says."""
        return scatter(inputs, index, self.node_dim, dim_size, str(self.aggr))

    def update(self, inputs: torch.Tensor) -> torch.Tensor:
        """As it is."""
        return inputs


class _Linear(torch.nn.Linear):
    def reset_parameters(self) -> None:
        glorot(self.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)


class GCNConv(MessagePassing):
    """Neighbours, each by the square roots of both degrees."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        improved: bool = False,
        cached: bool = False,
        add_self_loops: bool = True,
        normalize: bool = True,
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.loops, self.normalize, self.fill = add_self_loops, normalize, 2.0 if improved else 1.0
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = _Linear(in_channels, out_channels, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels)) if bias else None

    def reset_parameters(self) -> None:
        """From the beginning."""
        self.lin.reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        """Of all nodes."""
        count = x.size(0)
        weight = x.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight
        if self.normalize:
            if self.loops:
                edge_index, weight = remove_self_loops(edge_index, weight)
                edge_index, weight = add_self_loops(edge_index, weight, self.fill, count)
            sums = scatter(weight, edge_index[1], 0, count)
            root = sums.pow(-0.5)
            root = root.masked_fill(root == float("inf"), 0)
            weight = root[edge_index[0]] * weight * root[edge_index[1]]
        out = self.propagate(edge_index, x=self.lin(x), weight=weight)
        return out if self.bias is None else out + self.bias

    def message(self, x_j: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """By its weight."""
        return weight.view(-1, 1) * x_j


class SAGEConv(MessagePassing):
    """The mean of neighbours beside the node itself."""

    def __init__(
        self, in_channels: Any, out_channels: int, aggr: str = "mean", root_weight: bool = True,
        bias: bool = True, normalize: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(aggr)
        sizes = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
        self.normalize = normalize
        self.lin_l = torch.nn.Linear(sizes[0], out_channels, bias=bias)
        self.lin_r = torch.nn.Linear(sizes[1], out_channels, bias=False) if root_weight else None

    def reset_parameters(self) -> None:
        """From the beginning."""
        self.lin_l.reset_parameters()
        if self.lin_r is not None:
            self.lin_r.reset_parameters()

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Any:
        """Of all nodes."""
        both = x if isinstance(x, tuple) else (x, x)
        out = self.lin_l(self.propagate(edge_index, size, x=both))
        if self.lin_r is not None and both[1] is not None:
            out = out + self.lin_r(both[1])
        return functional.normalize(out, dim=-1) if self.normalize else out


class GraphConv(MessagePassing):
    """The sum of neighbours beside the node itself."""

    def __init__(self, in_channels: int, out_channels: int, aggr: str = "add", bias: bool = True) -> None:
        super().__init__(aggr)
        self.lin_rel = torch.nn.Linear(in_channels, out_channels, bias=bias)
        self.lin_root = torch.nn.Linear(in_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        """From the beginning."""
        self.lin_rel.reset_parameters()
        self.lin_root.reset_parameters()

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        """Of all nodes."""
        return self.lin_rel(self.propagate(edge_index, x=x, weight=edge_weight)) + self.lin_root(x)

    def message(self, x_j: torch.Tensor, weight: Any) -> torch.Tensor:  # type: ignore[override]
        """By its weight, if there is one."""
        return x_j if weight is None else weight.view(-1, 1) * x_j


class GINConv(MessagePassing):
    """A network of the sum of neighbours and the node itself."""

    def __init__(self, nn: Any, eps: float = 0.0, train_eps: bool = False, **kwargs: Any) -> None:
        super().__init__()
        self.nn = nn
        if train_eps:
            self.eps = torch.nn.Parameter(torch.tensor([float(eps)]))
        else:
            self.register_buffer("eps", torch.tensor([float(eps)]))

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Any:
        """Of all nodes."""
        return self.nn(self.propagate(edge_index, x=x) + (1 + self.eps) * x)


class EdgeConv(MessagePassing):
    """A network of each node and how each neighbour is unlike it, the largest values of it."""

    def __init__(self, nn: Any, aggr: str = "max", **kwargs: Any) -> None:
        super().__init__(aggr)
        self.nn = nn

    def forward(self, x: Any, edge_index: Any) -> Any:
        """Of all nodes."""
        return self.propagate(edge_index, x=x if isinstance(x, tuple) else (x, x))

    def message(self, x_i: torch.Tensor, x_j: torch.Tensor) -> Any:  # type: ignore[override]
        """Of two nodes."""
        return self.nn(torch.cat([x_i, x_j - x_i], -1))


class GATConv(MessagePassing):
    """Neighbours by how much they are attended to."""

    def __init__(
        self, in_channels: int, out_channels: int, heads: int = 1, concat: bool = True,
        negative_slope: float = 0.2, dropout: float = 0.0, add_self_loops: bool = True, bias: bool = True,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(node_dim=0)
        self.heads, self.out_channels, self.concat = heads, out_channels, concat
        self.negative_slope, self.dropout, self.loops = negative_slope, dropout, add_self_loops
        self.lin = _Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        width = heads * out_channels if concat else out_channels
        self.bias = torch.nn.Parameter(torch.zeros(width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """From the beginning."""
        self.lin.reset_parameters()
        glorot(self.att_src)
        glorot(self.att_dst)

    def forward(self, x: Any, edge_index: Any, edge_attr: Any = None) -> Any:
        """Of all nodes."""
        x = self.lin(x).view(-1, self.heads, self.out_channels)
        if self.loops:
            edge_index, _ = remove_self_loops(edge_index)
            edge_index, _ = add_self_loops(edge_index, num_nodes=len(x))
        alpha = ((x * self.att_src).sum(-1), (x * self.att_dst).sum(-1))
        out = self.propagate(edge_index, x=x, alpha=alpha)
        out = out.flatten(1) if self.concat else out.mean(1)
        return out if self.bias is None else out + self.bias

    def message(  # type: ignore[override]
        self, x_j: torch.Tensor, alpha_j: torch.Tensor, alpha_i: torch.Tensor, index: Any, dim_size: Any
    ) -> torch.Tensor:
        """By attention."""
        alpha = functional.leaky_relu(alpha_j + alpha_i, self.negative_slope)
        alpha = softmax(alpha, index, num_nodes=dim_size)
        return x_j * functional.dropout(alpha, self.dropout, self.training).unsqueeze(-1)


def _pooled(x: torch.Tensor, batch: Any, size: Any, how: str) -> torch.Tensor:
    batch = x.new_zeros(len(x), dtype=torch.long) if batch is None else batch
    return scatter(x, batch, 0, size, how)


def global_add_pool(x: torch.Tensor, batch: Any, size: Any = None) -> torch.Tensor:
    """The sum of each graph."""
    return _pooled(x, batch, size, "sum")


def global_mean_pool(x: torch.Tensor, batch: Any, size: Any = None) -> torch.Tensor:
    """The mean of each graph."""
    return _pooled(x, batch, size, "mean")


def global_max_pool(x: torch.Tensor, batch: Any, size: Any = None) -> torch.Tensor:
    """The largest values of each graph."""
    return _pooled(x, batch, size, "max")


conv = pool = glob = inits = sys.modules[__name__]
__getattr__ = others(__name__)
