"""Many graphs, of each of which something is to be told."""

from __future__ import annotations

from typing import Any

import torch

from ....inert import others
from ...torch_geometric.data import Data
from ...torch_geometric.datasets import COUNT, edges
from ..graphs import Named, chosen, generator, molecules
from ..scores import Evaluator as Evaluator

BINARY = "binary classification"
GRAPHS = {
    "ogbg-molhiv": (1, BINARY, "rocauc"),
    "ogbg-molpcba": (128, BINARY, "ap"),
    "ogbg-moltox21": (12, BINARY, "rocauc"),
    "ogbg-molbace": (1, BINARY, "rocauc"),
    "ogbg-molbbbp": (1, BINARY, "rocauc"),
    "ogbg-molclintox": (2, BINARY, "rocauc"),
    "ogbg-molmuv": (17, BINARY, "ap"),
    "ogbg-molsider": (27, BINARY, "rocauc"),
    "ogbg-moltoxcast": (617, BINARY, "rocauc"),
    "ogbg-molesol": (1, "regression", "rmse"),
    "ogbg-molfreesolv": (1, "regression", "rmse"),
    "ogbg-mollipo": (1, "regression", "rmse"),
    "ogbg-ppa": (1, "multiclass classification", "acc"),
}
"""Tasks, what is asked and how it is measured."""
SPECIES = 37
"""Classes of the one set that has more than two."""


class PygGraphPropPredDataset(Named):
    """The graphs as torch_geometric has them."""

    def __init__(
        self, name: str, root: Any = "dataset", transform: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        tasks, kind, metric = chosen(GRAPHS, name)
        if kind.startswith("multiclass"):
            held, classes = _species(name), SPECIES
        else:
            held, classes = molecules(name, tasks, kind == BINARY), 2 if kind == BINARY else -1
        super().__init__(name, held, classes, tasks, kind, metric, transform)


def _species(name: str) -> list[Any]:
    """Graphs whose edges alone have values."""
    drawn, held = generator(name), []
    for number in range(COUNT):
        count = int(torch.randint(8, 20, (), generator=drawn))
        joined = edges(count, drawn)
        told = torch.rand(joined.shape[1], 7, generator=drawn)
        held.append(Data(None, joined, told, y=torch.tensor([[number % SPECIES]]), count=count))
    return held


__getattr__ = others(__name__)
