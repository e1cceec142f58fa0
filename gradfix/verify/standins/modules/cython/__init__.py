"""cython: what a module of Cython says to its compiler, which nobody asks here."""

from __future__ import annotations

from typing import Any

from . import parallel

compiled = False
__all__ = ["compiled", "parallel"]


def same(*args: Any, **kwargs: Any) -> Any:
    """A decorator that leaves a function as it stands."""
    return lambda function: function


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return same
