"""Graphs with the sizes that the real ones have, but for the number of their nodes."""

from __future__ import annotations

from typing import Any

import torch

from ... import context
from ..torch_geometric.data import Data
from ..torch_geometric.datasets import COUNT, SMALL, Graphs, edges
from .utils.features import get_atom_feature_dims, get_bond_feature_dims

LARGE = 3000
"""Nodes where sizes are not reduced: more than enough for what a network takes of them at once."""


def generator(name: str) -> torch.Generator:
    """What the values of a data set are drawn from."""
    return context.run().generator("graphs", name)


def chosen(known: dict[str, Any], name: str) -> Any:
    """What is known of a data set."""
    name = str(name).replace("_", "-")
    if name not in known:
        context.run().stop(
            "the graphs " + name + " are not here, their sizes are unknown, and they are needed"
        )
    return known[name]


def nodes() -> int:
    """How many nodes a single graph has."""
    return SMALL if context.run().small else LARGE


def categories(dims: list[int], count: int, drawn: torch.Generator) -> torch.Tensor:
    """Columns of numbers of categories, of which older versions had fewer by one."""
    columns = [torch.randint(0, max(1, size - 1), (count,), generator=drawn) for size in dims]
    return torch.stack(columns, 1)


class Named(Graphs):
    """Graphs that belong to a name, and how they are divided."""

    def __init__(
        self,
        name: str,
        held: list[Any],
        classes: int,
        tasks: int,
        kind: str,
        metric: str,
        transform: Any = None,
    ) -> None:
        super().__init__(held, classes, transform)
        self.name, self.num_tasks, self.task_type, self.eval_metric = name, tasks, kind, metric
        self.is_hetero = self.binary = False
        context.run().used("graphs " + str(name), "random ones with the widths of the real ones")

    def parted(self, count: int) -> dict[str, torch.Tensor]:
        """Six of ten for training, two for each of the others."""
        order = torch.randperm(count, generator=generator(self.name + " parts"))
        first, last = 6 * count // 10, 8 * count // 10
        return {"train": order[:first], "valid": order[first:last], "test": order[last:]}

    def get_idx_split(self, split_type: Any = None) -> dict[str, torch.Tensor]:
        """The numbers of the nodes of one graph, or of several graphs."""
        return self.parted(self.held[0].num_nodes if len(self.held) == 1 else len(self.held))


def single(name: str, width: int, wide: int = 0, **more: Any) -> Any:
    """One graph: the values of a node and of an edge."""
    drawn, count = generator(name), nodes()
    joined = edges(count, drawn)
    x = torch.randn(count, width, generator=drawn) if width else None
    told = torch.rand(joined.shape[1], wide, generator=drawn) if wide else None
    return Data(x, joined, told, count=count, **more)


def molecules(name: str, tasks: int, whole: bool) -> list[Any]:
    """Atoms and bonds by their categories, and what is true of each molecule."""
    drawn, held = generator(name), []
    for number in range(COUNT):
        count = int(torch.randint(8, 20, (), generator=drawn))
        joined = edges(count, drawn)
        y = (
            torch.randint(0, 2, (1, tasks), generator=drawn)
            if whole
            else torch.randn(1, tasks, generator=drawn)
        )
        # A set of one task has both classes in all of its parts.
        y[:, :1] = number % 2 if whole else y[:, :1]
        held.append(
            Data(
                categories(get_atom_feature_dims(), count, drawn),
                joined,
                categories(get_bond_feature_dims(), joined.shape[1], drawn),
                y=y,
                count=count,
            )
        )
    return held
