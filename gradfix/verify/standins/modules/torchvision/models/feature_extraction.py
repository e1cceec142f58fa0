"""What a network computes on the way, by the names of its parts."""

from __future__ import annotations

from typing import Any

import torch


class Extractor(torch.nn.Module):
    """A network that answers with what some of its parts gave."""

    def __init__(self, model: torch.nn.Module, nodes: dict[str, str]) -> None:
        super().__init__()
        self.model = model
        self.nodes = nodes
        self.seen: dict[str, Any] = {}
        for name, part in model.named_modules():
            if name in nodes:
                part.register_forward_hook(self._keeper(nodes[name]))

    def _keeper(self, name: str) -> Any:
        def keep(module: Any, given: Any, found: Any) -> None:
            self.seen[name] = found

        return keep

    def forward(self, *args: Any) -> dict[str, Any]:
        self.seen = {}
        self.model(*args)
        return {name: self.seen[name] for name in self.nodes.values() if name in self.seen}


def create_feature_extractor(
    model: torch.nn.Module, return_nodes: Any, *args: Any, **kwargs: Any
) -> Extractor:
    """A network that answers with what the named parts gave."""
    return Extractor(
        model, return_nodes if isinstance(return_nodes, dict) else {one: one for one in return_nodes}
    )


def get_graph_node_names(model: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[list[str], list[str]]:
    """The names of the parts, in training and in evaluation."""
    names = [name for name, _ in model.named_modules() if name]
    return names, names
