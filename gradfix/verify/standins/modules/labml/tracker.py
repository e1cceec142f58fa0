"""What labml is told of a run, of which it only keeps how far it is."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any

from ...inert import others

_step: int | None = None


def set_global_step(global_step: int | None) -> None:
    """Say how far the run is."""
    global _step
    _step = global_step


def add_global_step(increment_global_step: int = 1) -> None:
    """Say how much farther the run is."""
    set_global_step(get_global_step() + increment_global_step)


def get_global_step() -> int:
    """How far the run is."""
    return _step or 0


def add(*args: Any, **kwargs: Any) -> None:
    """Nothing."""


def save(*args: Any, **kwargs: Any) -> None:
    """Take how far the run is, if that is said first."""
    if args and type(args[0]) is int:
        set_global_step(args[0])


set_scalar = set_histogram = set_queue = set_indexed_scalar = set_image = set_text = set_tensor = add
new_line = debug = add


def reset() -> None:
    """Begin again."""
    set_global_step(None)


def namespace(name: str) -> AbstractContextManager[None]:
    """Under which name something is told."""
    return contextlib.nullcontext()


__getattr__ = others(__name__)
