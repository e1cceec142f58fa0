"""Graphs with the sizes of the real ones, and values by the run's seed."""

from __future__ import annotations

from typing import Any

import torch

from ... import context
from ...inert import others
from .data import Data

CITATIONS = {"cora": (2708, 1433, 7), "citeseer": (3327, 3703, 6), "pubmed": (19717, 500, 3)}
GRAPHS = {
    "MUTAG": (7, 2),
    "PROTEINS": (3, 2),
    "ENZYMES": (3, 6),
    "NCI1": (37, 2),
    "DD": (89, 2),
    "IMDB-BINARY": (0, 2),
    "IMDB-MULTI": (0, 3),
    "COLLAB": (0, 3),
    "REDDIT-BINARY": (0, 2),
}
"""Values of a node (none: only edges), and classes."""
SMALL = 300
"""Nodes where sizes are reduced."""
COUNT = 64
"""Graphs of a set of them."""


class Graphs(torch.utils.data.Dataset[Any]):
    """Several graphs."""

    def __init__(self, held: list[Any], classes: int, transform: Any = None) -> None:
        self.held, self.num_classes, self.transform = held, classes, transform

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, int):
            found = self.held[place].clone()
            return self.transform(found) if self.transform else found
        if isinstance(place, slice):
            chosen = list(range(len(self)))[place]
        else:
            values = torch.as_tensor(place)
            chosen = (values.nonzero().flatten() if values.dtype == torch.bool else values).tolist()
        return Graphs([self.held[one] for one in chosen], self.num_classes, self.transform)

    @property
    def data(self) -> Any:
        """The first one."""
        return self[0]

    _data = data

    @property
    def num_features(self) -> int:
        """Values of a node."""
        return int(self.held[0].num_node_features)

    num_node_features = num_features

    @property
    def num_edge_features(self) -> int:
        """Values of an edge."""
        return int(self.held[0].num_edge_features)

    def shuffle(self, *args: Any) -> Any:
        """In another order."""
        return self[torch.randperm(len(self))]

    def copy(self, *args: Any) -> Any:
        """The same."""
        return self


def edges(count: int, generator: torch.Generator) -> torch.Tensor:
    """About four for each node, each in both directions."""
    drawn = torch.randint(0, count, (2, 2 * count), generator=generator)
    drawn = drawn[:, drawn[0] != drawn[1]]
    return torch.cat([drawn, drawn.flip(0)], 1)


class Planetoid(Graphs):
    """Papers that cite each other."""

    def __init__(
        self,
        root: Any = None,
        name: str = "Cora",
        split: str = "public",
        transform: Any = None,
        **kwargs: Any,
    ) -> None:
        run = context.run()
        if str(name).lower() not in CITATIONS:
            run.stop("the graph " + str(name) + " is not here, its sizes are unknown, and they are needed")
        count, width, classes = CITATIONS[str(name).lower()]
        count = min(count, SMALL) if run.small else count
        generator = run.generator("graph", name)
        x = (torch.rand(count, width, generator=generator) < 0.02).float()
        graph: Any = Data(x, edges(count, generator), y=torch.arange(count) % classes)
        order = torch.randperm(count, generator=generator)
        for part, first, last in (("train", 0, 20 * classes), ("val", 20 * classes, 2 * count // 3)):
            mask = torch.zeros(count, dtype=torch.bool)
            mask[order[first:last]] = True
            setattr(graph, part + "_mask", mask)
        graph.test_mask = ~(graph.train_mask | graph.val_mask)
        run.used("graph " + str(name), f"a random one of {count} nodes with {width} values")
        super().__init__([graph], classes, transform)


class TUDataset(Graphs):
    """Molecules and the like, each of a class."""

    def __init__(self, root: Any = None, name: str = "", transform: Any = None, **kwargs: Any) -> None:
        run = context.run()
        if name not in GRAPHS:
            run.stop("the graphs " + name + " are not here, their sizes are unknown, and they are needed")
        width, classes = GRAPHS[name]
        generator, held = run.generator("graphs", name), []
        for number in range(COUNT):
            count = int(torch.randint(8, 20, (), generator=generator))
            kinds = torch.randint(0, max(width, 1), (count,), generator=generator)
            x = torch.nn.functional.one_hot(kinds, width).float() if width else None
            held.append(Data(x, edges(count, generator), y=torch.tensor([number % classes]), count=count))
        run.used("graphs " + name, f"{COUNT} random ones")
        super().__init__(held, classes, transform)


class PPI(Graphs):
    """Proteins that act on each other in several tissues; each has several classes."""

    def __init__(self, root: Any = None, split: str = "train", transform: Any = None, **kwargs: Any) -> None:
        run = context.run()
        count, nodes = (20 if split == "train" else 2), (SMALL // 3 if run.small else 2372)
        held = []
        for number in range(count):
            generator = run.generator("graphs PPI", split, number)
            x = torch.randn(nodes, 50, generator=generator)
            y = (torch.rand(nodes, 121, generator=generator) < 0.3).float()
            held.append(Data(x, edges(nodes, generator), y=y))
        run.used("graphs PPI", f"{count} random ones of {nodes} nodes")
        super().__init__(held, 121, transform)


__getattr__ = others(__name__)
