"""Changes of graphs that are made up anyway."""

from __future__ import annotations

from typing import Any


class Compose:
    """One after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, graph: Any) -> Any:
        for one in self.transforms:
            graph = one(graph)
        return graph


class NormalizeFeatures:
    """Values of a node that are 1 together."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, graph: Any) -> Any:
        graph.x = graph.x / graph.x.sum(-1, keepdim=True).clamp(min=1.0)
        return graph


class ToUndirected(NormalizeFeatures):
    """They are."""

    def __call__(self, graph: Any) -> Any:
        return graph


AddSelfLoops = LargestConnectedComponents = ToUndirected
