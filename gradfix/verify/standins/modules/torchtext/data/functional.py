"""Helpers for data that is read as a stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class _Listed(torch.utils.data.Dataset[Any]):
    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Any:
        return self.values[index]


def to_map_style_dataset(values: Iterable[Any]) -> torch.utils.data.Dataset[Any]:
    """A stream as a data set with numbers."""
    return _Listed(values)
