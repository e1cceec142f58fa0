"""torchnet: lists as data sets, and what counts."""

from __future__ import annotations

import sys
from typing import Any

import torch

from ..inert import others


class ListDataset(torch.utils.data.Dataset[Any]):
    """What a function makes of each of a list."""

    def __init__(self, elem_list: Any, load: Any = lambda one: one, path: Any = None) -> None:
        self.elements = list(range(elem_list) if isinstance(elem_list, int) else elem_list)
        self.load = load

    def __len__(self) -> int:
        return len(self.elements)

    def __getitem__(self, index: int) -> Any:
        return self.load(self.elements[index])

    def parallel(self, *args: Any, **kwargs: Any) -> Any:
        """A loader of it."""
        return torch.utils.data.DataLoader(self, *args, **kwargs)


class TensorDataset(ListDataset):
    """The rows of a tensor, or of several."""

    def __init__(self, data: Any) -> None:
        super().__init__(len(data if isinstance(data, torch.Tensor) else next(iter(data.values()))), self.row)
        self.data = data

    def row(self, index: int) -> Any:
        """A row."""
        if isinstance(self.data, torch.Tensor):
            return self.data[index]
        return {name: values[index] for name, values in self.data.items()}


class AverageValueMeter:
    """A mean."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.reset()

    def reset(self) -> None:
        """Of nothing."""
        self.total, self.count = 0.0, 0

    def add(self, value: Any, n: int = 1) -> None:
        """One more."""
        self.total, self.count = self.total + float(value) * n, self.count + n

    def value(self) -> tuple[float, float]:
        """The mean, and how much it varies."""
        return self.total / max(1, self.count), 0.0


dataset = meter = listdataset = tensordataset = sys.modules[__name__]
__getattr__ = others(__name__)
