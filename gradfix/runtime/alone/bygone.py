"""Interfaces that Python, numpy and torch no longer have, for code that was written when they had."""

from __future__ import annotations

import collections
import collections.abc
import inspect
from typing import Any

import torch


def install() -> None:
    """Let code use them."""
    for name in (
        "Callable",
        "Iterable",
        "Mapping",
        "MutableMapping",
        "Sequence",
        "Sized",
        "Iterator",
        "Hashable",
    ):
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    _numpy()
    rows: Any = torch.utils.data.dataloader._BaseDataLoaderIter
    rows.next = rows.__next__
    for kind in _classes(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler):
        _without(kind, "verbose")
    for kind in _classes(torch.optim, torch.optim.Optimizer):
        if "betas" in inspect.signature(kind).parameters:
            _with_float_betas(kind)


def _classes(module: Any, base: type) -> list[Any]:
    """The classes in a module that derive from one, and have a constructor of their own."""
    held = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]
    return [one for one in held if "__init__" in vars(one)]


def _numpy() -> None:
    try:
        import numpy
    except ImportError:
        return
    for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object), ("str", str)):
        if name not in vars(numpy):
            setattr(numpy, name, kind)


def _without(kind: Any, name: str) -> None:
    """Let the constructor of a class ignore an argument that it does not take any more."""
    real = kind.__init__
    if name in inspect.signature(real).parameters:
        return

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.pop(name, None)
        real(self, *args, **kwargs)

    init.__signature__ = inspect.signature(real)  # type: ignore[attr-defined]
    kind.__init__ = init


def _with_float_betas(kind: Any) -> None:
    """Let ``betas=(0, 0.9)`` be two numbers of one type."""
    real = kind.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(kwargs.get("betas"), (tuple, list)):
            kwargs["betas"] = tuple(float(one) if isinstance(one, int) else one for one in kwargs["betas"])
        real(self, *args, **kwargs)

    init.__signature__ = inspect.signature(real)  # type: ignore[attr-defined]
    kind.__init__ = init
