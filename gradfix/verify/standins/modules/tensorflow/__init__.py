"""tensorflow: the reader of MNIST that scripts for torch took from its tutorials, and nothing else."""

from __future__ import annotations

from typing import Any

from ...inert import Inert


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Inert("tensorflow." + name)
