"""tensorflow: the reader of MNIST that scripts for torch took from its tutorials, and nothing else."""

from __future__ import annotations

from .....inert import others


__getattr__ = others(__name__)
