"""What older versions of Python, torch and numpy had, and scripts still ask for."""

from __future__ import annotations

import collections
import collections.abc
import fractions
import importlib.util
import inspect
import itertools
import math
import os
import re
import sys
import time
import types
from typing import Any

import torch

from . import context, inert

NUMPY = {
    "float": float,
    "int": int,
    "bool": bool,
    "object": object,
    "str": str,
    "complex": complex,
    "long": int,
}


def install(run: context.Run, builtins: types.ModuleType) -> None:
    """Give the old names their old meaning, where they have none today."""
    names(run, builtins)
    indexing(run)
    loaders(run)
    schedulers(run)
    plotting(run)
    if "numpy" in sys.modules:
        arrays(run, sys.modules["numpy"])


def names(run: context.Run, builtins: Any) -> None:
    """Names that left Python or its ``collections``."""
    for name, value in (
        ("xrange", range),
        ("unicode", str),
        ("raw_input", lambda *args: ""),
        ("unichr", chr),
    ):
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
    builtins.input = lambda *args: ""
    for name in ("Iterable", "Mapping", "Sequence", "Callable", "MutableMapping", "Hashable"):
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    if not hasattr(itertools, "izip"):
        itertools.izip = zip  # type: ignore[attr-defined]
    if not hasattr(fractions, "gcd"):
        fractions.gcd = math.gcd  # type: ignore[attr-defined]
    if not hasattr(time, "clock"):
        time.clock = time.perf_counter  # type: ignore[attr-defined]
    time.sleep = lambda seconds: None


def indexing(run: context.Run) -> None:
    """``loss.data[0]`` of a tensor without dimensions: its only value.

    Only where the project writes that: with a method of Python's own, torch takes such a tensor for a
    sequence, and a list of them for one of sequences.
    """
    folder = os.path.dirname(run.script)
    names = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    texts = [run.source, *(context.read(name) for name in names)]
    if not any(re.search(r"\.data\s*\[0\]", text) for text in texts):
        return
    real = torch.Tensor.__getitem__

    def get(self: torch.Tensor, index: Any) -> Any:
        if type(index) is int and index == 0 and self.dim() == 0:
            run.used("indexing a tensor without dimensions", "its only value")
            return self
        return real(self, index)

    context.replace(torch.Tensor, "__getitem__", get)


def loaders(run: context.Run) -> None:
    """``iter(loader).next()``."""
    import torch.utils.data.dataloader as module

    def following(self: Any) -> Any:
        return next(self)

    module._BaseDataLoaderIter.next = following  # type: ignore[attr-defined]


def schedulers(run: context.Run) -> None:
    """``verbose`` of a schedule, which some no longer take: it only prints."""
    for owner in vars(torch.optim.lr_scheduler).values():
        if inspect.isclass(owner) and "__init__" in vars(owner):
            parameters = inspect.signature(owner.__init__).parameters
            if "optimizer" in parameters and "verbose" not in parameters:
                context.replace(owner, "__init__", without(owner.__init__, "verbose"))


def without(real: Any, dropped: str) -> Any:
    """A function that takes one more keyword and does nothing with it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop(dropped, None)
        return real(*args, **kwargs)

    return call


def plotting(run: context.Run) -> None:
    """``torch.utils.tensorboard`` without tensorboard."""
    if importlib.util.find_spec("tensorboard") is None:
        name = "torch.utils.tensorboard"
        torch.utils.tensorboard = sys.modules[name] = inert.InertModule(name, lenient=True)


def arrays(run: context.Run, numpy: Any) -> None:
    """Aliases that numpy has dropped."""
    for name, kind in NUMPY.items():
        if name not in numpy.__dict__:
            setattr(numpy, name, kind)
    for name, value in (
        ("Inf", float("inf")),
        ("NaN", float("nan")),
        ("float_", float),
        ("product", numpy.prod),
    ):
        if name not in numpy.__dict__:
            setattr(numpy, name, value)
