"""One graph, of whose nodes it is to be told which ones are joined."""

from __future__ import annotations

from typing import Any

import torch

from ...inert import others
from .graphs import Named, chosen, generator, single
from .scores import Evaluator as Evaluator

LINKS = {
    "ogbl-collab": (128, "hits@50"),
    "ogbl-ddi": (0, "hits@20"),
    "ogbl-ppa": (58, "hits@100"),
    "ogbl-citation2": (128, "mrr"),
}
"""Values of a node, and how answers are measured."""
WRONG = 20
"""Nodes to which a paper is not joined, for one to which it is."""


class PygLinkPropPredDataset(Named):
    """The graph as torch_geometric has it."""

    def __init__(
        self, name: str, root: Any = "dataset", transform: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        width, metric = chosen(LINKS, name)
        graph = single(name, width)
        if name == "ogbl-collab":
            drawn = generator(name + " weights")
            graph.edge_weight = torch.randint(1, 4, (graph.num_edges, 1), generator=drawn)
            graph.edge_year = torch.randint(1990, 2018, (graph.num_edges, 1), generator=drawn)
        super().__init__(name, [graph], 0, 1, "link prediction", metric, transform)

    def get_edge_split(self, split_type: Any = None) -> dict[str, dict[str, torch.Tensor]]:
        """Edges that there are, in each part, and for tests some that there are not."""
        graph, drawn, found = self.held[0], generator(self.name + " wrong"), {}
        for part, places in self.parted(graph.num_edges).items():
            right, count = graph.edge_index[:, places].t(), graph.num_nodes
            one: dict[str, torch.Tensor]
            if self.eval_metric == "mrr":
                one = {"source_node": right[:, 0], "target_node": right[:, 1]}
                if part != "train":
                    one["target_node_neg"] = torch.randint(0, count, (len(right), WRONG), generator=drawn)
            else:
                one = {"edge": right}
                if part != "train":
                    one["edge_neg"] = torch.randint(0, count, right.shape, generator=drawn)
                if self.name == "ogbl-collab":
                    one["weight"], one["year"] = graph.edge_weight[places, 0], graph.edge_year[places, 0]
            found[part] = one
        return found


__getattr__ = others(__name__)
