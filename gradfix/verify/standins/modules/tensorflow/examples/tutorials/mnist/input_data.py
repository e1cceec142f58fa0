"""MNIST as arrays, in batches one after the other."""

from __future__ import annotations

from typing import Any

import torch

from ......context import run
from ......samples import KINDS, labels, pictures


class Part:
    """One part of the data."""

    def __init__(self, name: str, count: int, one_hot: bool) -> None:
        found = pictures(run(), "MNIST" + name, count, KINDS["MNIST"]).reshape(count, -1).float() / 255
        digits = labels(run(), "MNIST" + name, count, 10)
        self.images = found.numpy()
        self.labels = (torch.nn.functional.one_hot(digits, 10).double() if one_hot else digits).numpy()
        self.num_examples = count
        self.at = 0

    def next_batch(self, batch_size: int, *args: Any, **kwargs: Any) -> Any:
        """The next pictures and labels."""
        if self.at + batch_size > self.num_examples:
            self.at = 0
        rows = slice(self.at, self.at + batch_size)
        self.at += batch_size
        return self.images[rows], self.labels[rows]


class DataSets:
    """The parts of the data."""

    def __init__(self, one_hot: bool) -> None:
        self.train = Part("train", 5500, one_hot)
        self.validation = Part("validation", 500, one_hot)
        self.test = Part("test", 1000, one_hot)


def read_data_sets(folder: str, one_hot: bool = False, *args: Any, **kwargs: Any) -> DataSets:
    """A tenth of the pictures that MNIST has."""
    run().used("tensorflow.examples.tutorials.mnist", "7,000 made-up pictures, 28 x 28")
    return DataSets(one_hot)
