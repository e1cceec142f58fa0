"""Worlds by their names."""

from typing import Any

from .worlds import module


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return module(name)
