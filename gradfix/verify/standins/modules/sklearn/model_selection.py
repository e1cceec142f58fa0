"""Splits of data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import torch

from ...inert import others


def shuffled(count: int, seed: Any) -> Any:
    """The places in another order, by numpy's generator or by one with a seed."""
    source = numpy.random.RandomState(seed) if isinstance(seed, int) else numpy.random
    return source.permutation(count)


def taken(values: Any, rows: Any) -> Any:
    """Some of the rows."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if isinstance(values, torch.Tensor):
        return values[torch.as_tensor(rows)]
    if isinstance(values, (list, tuple)):
        return [values[int(row)] for row in rows]
    return numpy.asarray(values)[rows]


def train_test_split(
    *arrays: Any,
    test_size: Any = None,
    train_size: Any = None,
    random_state: Any = None,
    shuffle: bool = True,
    stratify: Any = None,
) -> list[Any]:
    """Two parts of each array."""
    count = len(arrays[0])
    if test_size is None:
        test_size = 0.25 if train_size is None else (1 - train_size if train_size < 1 else count - train_size)
    held = int(numpy.ceil(test_size * count)) if isinstance(test_size, float) else int(test_size)
    rows = shuffled(count, random_state) if shuffle else numpy.arange(count)
    first, second = (rows[held:], rows[:held]) if shuffle else (rows[: count - held], rows[count - held :])
    return [part for one in arrays for part in (taken(one, first), taken(one, second))]


class KFold:
    """As many parts as there are folds, each of them held out once."""

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None:
        self.n_splits, self.shuffle, self.random_state = n_splits, shuffle, random_state

    def get_n_splits(self, *args: Any) -> int:
        """The number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """The rows for training and those held out."""
        rows = shuffled(len(X), self.random_state) if self.shuffle else numpy.arange(len(X))
        for held in numpy.array_split(rows, self.n_splits):
            yield numpy.setdiff1d(rows, held), held


StratifiedKFold = GroupKFold = RepeatedKFold = KFold


class ShuffleSplit(KFold):
    """Random parts, as many as there are splits."""

    def __init__(
        self, n_splits: int = 10, *, test_size: Any = 0.1, random_state: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(n_splits, random_state=random_state)
        self.test_size = test_size or 0.1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        for number in range(self.n_splits):
            seed = self.random_state + number if isinstance(self.random_state, int) else None
            rows = numpy.arange(len(X))
            yield tuple(train_test_split(rows, test_size=self.test_size, random_state=seed))


StratifiedShuffleSplit = ShuffleSplit
__getattr__ = others(__name__)
