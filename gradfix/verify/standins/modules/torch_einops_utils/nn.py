"""Networks and what is done to them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch


def Sequential(*modules: Any) -> torch.nn.Sequential:
    """Those that are there, one after the other."""
    return torch.nn.Sequential(*(one for one in modules if one is not None))


class Identity(torch.nn.Module):
    """What it is given first."""

    def forward(self, t: Any, *args: Any, **kwargs: Any) -> Any:
        """The first argument."""
        return t


class Lambda(torch.nn.Module):
    """A function."""

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives."""
        return self.fn(*args, **kwargs)


@contextlib.contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """The network in the mode of evaluation."""
    was = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was)


def temp_eval(what: Any) -> Any:
    """A network in the mode of evaluation within ``with``, or a method that has its own so."""
    if isinstance(what, torch.nn.Module):
        return evaluating(what)

    @functools.wraps(what)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with evaluating(self):
            return what(self, *args, **kwargs)

    return call
