"""One graph, of whose nodes something is to be told."""

from __future__ import annotations

from typing import Any

import torch

from ...inert import others
from .graphs import Named, chosen, generator, nodes, single
from .scores import Evaluator as Evaluator

NODES = {
    "ogbn-arxiv": (128, 0, 40, 1, "multiclass classification", "acc"),
    "ogbn-products": (100, 0, 47, 1, "multiclass classification", "acc"),
    "ogbn-papers100M": (128, 0, 172, 1, "multiclass classification", "acc"),
    "ogbn-proteins": (0, 8, 2, 112, "binary classification", "rocauc"),
}
"""Values of a node and of an edge, classes, tasks, what is asked and how it is measured."""


class PygNodePropPredDataset(Named):
    """The graph as torch_geometric has it."""

    def __init__(
        self, name: str, root: Any = "dataset", transform: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        width, wide, classes, tasks, kind, metric = chosen(NODES, name)
        count, drawn = nodes(), generator(name + " y")
        more: dict[str, Any] = {}
        if tasks > 1:
            more["y"] = torch.randint(0, 2, (count, tasks), generator=drawn)
            more["node_species"] = 100 * torch.randint(1, 9, (count, 1), generator=drawn)
        else:
            more["y"] = (torch.arange(count) % classes)[:, None]
            more["node_year"] = torch.randint(1990, 2021, (count, 1), generator=drawn)
        graph = single(name, width, wide, **more)
        super().__init__(name, [graph], classes, tasks, kind, metric, transform)


def _number(value: Any) -> Any:
    return None if value is None else value.numpy()


class NodePropPredDataset(PygNodePropPredDataset):
    """The graph as a dictionary of arrays, and what is to be told."""

    def __getitem__(self, place: Any) -> Any:
        graph = self.held[place]
        names = {"edge_index": "edge_index", "edge_feat": "edge_attr", "node_feat": "x"}
        held = {name: _number(getattr(graph, own)) for name, own in names.items()}
        held.update({name: _number(graph[name]) for name in ("node_year", "node_species") if name in graph})
        return {**held, "num_nodes": graph.num_nodes}, graph.y.numpy()

    def get_idx_split(self, split_type: Any = None) -> dict[str, Any]:
        """The numbers of nodes."""
        return {part: one.numpy() for part, one in super().get_idx_split(split_type).items()}


__getattr__ = others(__name__)
