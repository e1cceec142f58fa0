"""torchnet: lists as data sets, what counts, and its loop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
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


class ClassErrorMeter:
    """The share of samples, in percent, that a network does not put among its first ``topk`` classes."""

    def __init__(self, topk: Any = (1,), accuracy: bool = False) -> None:
        self.topk = sorted(topk)
        self.accuracy = accuracy
        self.reset()

    def reset(self) -> None:
        """Of nothing."""
        self.wrong, self.count = dict.fromkeys(self.topk, 0), 0

    def add(self, output: Any, target: Any) -> None:
        """Scores, samples x classes, and the classes of the samples."""
        scores, classes = torch.as_tensor(output), torch.as_tensor(target).reshape(-1, 1)
        first = scores.reshape(-1, scores.shape[-1]).topk(min(self.topk[-1], scores.shape[-1]), dim=1).indices
        for k in self.topk:
            self.wrong[k] += len(classes) - int((first[:, :k] == classes).sum())
        self.count += len(classes)

    def value(self, k: int = -1) -> Any:
        """The share of one, or of each."""
        if k != -1:
            error = 100.0 * self.wrong[k] / max(1, self.count)
            return 100.0 - error if self.accuracy else error
        return [self.value(one) for one in self.topk]


class ConfusionMeter:
    """How many samples of each class a network takes for each: ``k`` x ``k``."""

    def __init__(self, k: int, normalized: bool = False) -> None:
        self.k, self.normalized = k, normalized
        self.reset()

    def reset(self) -> None:
        """Of nothing."""
        self.conf = numpy.zeros((self.k, self.k), dtype=numpy.int32)

    def add(self, predicted: Any, target: Any) -> None:
        """Classes, or scores of them, and the true classes, or one-hot rows of them."""
        both = [numpy.asarray(torch.as_tensor(one).detach().cpu()) for one in (predicted, target)]
        taken, true = (one.argmax(1) if one.ndim > 1 else one for one in both)
        numpy.add.at(self.conf, (true.astype(int), taken.astype(int)), 1)

    def value(self) -> Any:
        """The counts, or the shares of each class."""
        whole = self.conf.sum(1).clip(min=1e-12)[:, None]
        return self.conf.astype(numpy.float32) / whole if self.normalized else self.conf


class TimeMeter:
    """Seconds."""

    def __init__(self, unit: Any = False) -> None:
        self.reset()

    def reset(self) -> None:
        """From now on."""
        self.began = time.time()

    def value(self) -> float:
        """Since then."""
        return time.time() - self.began


class Engine:
    """A loop of training: ``network(sample)`` gives the loss and the output; functions of the script's, by
    the places in the loop at which they are called, get its state."""

    def __init__(self) -> None:
        self.hooks: dict[str, Callable[[Any], Any]] = {}

    def hook(self, name: str, state: Any) -> None:
        """Call the script's function for a place."""
        if name in self.hooks:
            self.hooks[name](state)

    def train(self, network: Any, iterator: Any, maxepoch: int, optimizer: Any) -> Any:
        """Train for so many epochs; the last state."""
        state = {"network": network, "iterator": iterator, "maxepoch": maxepoch, "optimizer": optimizer}
        state |= {"epoch": 0, "t": 0, "train": True}
        self.hook("on_start", state)
        while state["epoch"] < state["maxepoch"]:
            self.hook("on_start_epoch", state)
            for sample in state["iterator"]:
                state["sample"] = sample
                self.hook("on_sample", state)

                def closure() -> Any:
                    loss, output = state["network"](state["sample"])
                    state.update(loss=loss, output=output)
                    loss.backward()
                    self.hook("on_forward", state)
                    state.update(loss=None, output=None)
                    return loss

                state["optimizer"].zero_grad()
                state["optimizer"].step(closure)
                self.hook("on_update", state)
                state["t"] += 1
            state["epoch"] += 1
            self.hook("on_end_epoch", state)
        self.hook("on_end", state)
        return state

    def test(self, network: Any, iterator: Any) -> Any:
        """The same without gradients; the last state."""
        state = {"network": network, "iterator": iterator, "t": 0, "train": False}
        self.hook("on_start", state)
        for sample in state["iterator"]:
            state["sample"] = sample
            self.hook("on_sample", state)
            state["loss"], state["output"] = state["network"](state["sample"])
            self.hook("on_forward", state)
            state.update(loss=None, output=None)
            state["t"] += 1
        self.hook("on_end", state)
        return state


dataset = meter = engine = listdataset = tensordataset = sys.modules[__name__]
__getattr__ = others(__name__)
