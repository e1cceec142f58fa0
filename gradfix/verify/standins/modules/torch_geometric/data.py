"""Graphs, and several of them as one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch

from ...inert import others


class Data:
    """A graph: values of its nodes, its edges, and more by name."""

    def __init__(
        self,
        x: Any = None,
        edge_index: Any = None,
        edge_attr: Any = None,
        y: Any = None,
        pos: Any = None,
        **more: Any,
    ) -> None:
        known = {"x": x, "edge_index": edge_index, "edge_attr": edge_attr, "y": y, "pos": pos}
        self.__dict__.update({name: value for name, value in {**known, **more}.items() if value is not None})

    def __getattr__(self, name: str) -> Any:
        if name in ("x", "edge_index", "edge_attr", "y", "pos", "batch", "edge_weight"):
            return None
        raise AttributeError(name)

    @property
    def keys(self) -> Any:
        """The names of what it has: a list that may be called for it."""
        return _Names(self.__dict__)

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__.items())

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        if "count" in self.__dict__:
            return int(self.count)
        for one in (self.x, self.pos):
            if one is not None:
                return len(one)
        return int(self.edge_index.max()) + 1

    @num_nodes.setter
    def num_nodes(self, value: int) -> None:
        self.count = value

    @property
    def num_edges(self) -> int:
        """How many edges there are."""
        return int(self.edge_index.shape[1])

    @property
    def num_node_features(self) -> int:
        """Values of a node."""
        return 0 if self.x is None else 1 if self.x.dim() == 1 else int(self.x.shape[1])

    num_features = num_node_features

    @property
    def num_edge_features(self) -> int:
        """Values of an edge."""
        return 0 if self.edge_attr is None else int(self.edge_attr.reshape(len(self.edge_attr), -1).shape[1])

    def is_undirected(self) -> bool:
        """What is made up is."""
        return True

    def clone(self) -> Any:
        """The same again."""
        return copy.deepcopy(self)

    def apply(self, change: Any) -> Any:
        """Change all tensors."""
        for name, value in self.__dict__.items():
            if isinstance(value, torch.Tensor):
                self.__dict__[name] = change(value)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Elsewhere."""
        return self.apply(lambda one: one.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """Where there is none: here."""
        return self

    cpu = contiguous = coalesce = cuda


class _Names(list[str]):
    def __call__(self) -> list[str]:
        return self


class Batch(Data):
    """Several graphs as one, in which none is joined to another."""

    @classmethod
    def from_data_list(cls, graphs: Any, *args: Any, **kwargs: Any) -> Any:
        """One after the other."""
        made: Any = cls()
        sizes = [one.num_nodes for one in graphs]
        starts = [sum(sizes[:place]) for place in range(len(sizes))]
        for name in graphs[0].__dict__:
            values = [one.__dict__[name] for one in graphs]
            if name == "count":
                continue
            if not isinstance(values[0], torch.Tensor):
                numbers = all(type(one) in (int, float) for one in values)
                made.__dict__[name] = torch.tensor(values) if numbers else values
                continue
            if "index" in name or name == "face":
                values = [one + start for one, start in zip(values, starts)]
            values = [one[None] if one.dim() == 0 else one for one in values]
            made.__dict__[name] = torch.cat(values, -1 if "index" in name or name == "face" else 0)
        made.batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        made.ptr = torch.tensor([*starts, sum(sizes)])
        made.count, made.graphs = sum(sizes), list(graphs)
        return made

    @property
    def num_graphs(self) -> int:
        """How many graphs there are."""
        return len(self.graphs)

    def to_data_list(self) -> list[Any]:
        """The graphs."""
        return list(self.graphs)


class DataLoader(torch.utils.data.DataLoader[Any]):
    """Batches of graphs."""

    def __init__(self, dataset: Any, batch_size: int = 1, shuffle: bool = False, **kwargs: Any) -> None:
        for name in ("follow_batch", "exclude_keys", "collate_fn"):
            kwargs.pop(name, None)
        super().__init__(dataset, batch_size, shuffle, collate_fn=Batch.from_data_list, **kwargs)


class DataListLoader(torch.utils.data.DataLoader[Any]):
    """Batches that are lists of graphs."""

    def __init__(self, dataset: Any, batch_size: int = 1, shuffle: bool = False, **kwargs: Any) -> None:
        kwargs.pop("collate_fn", None)
        super().__init__(dataset, batch_size, shuffle, collate_fn=list, **kwargs)


__getattr__ = others(__name__)
