"""torch_geometric: its usual layers, computed as the real ones do, over graphs that are made up."""

from __future__ import annotations

from ...inert import others
from . import data, datasets, loader, nn, transforms, utils

__version__ = "2.5.0"
__all__ = ["data", "datasets", "loader", "nn", "seed_everything", "transforms", "utils"]


def seed_everything(seed: int) -> None:
    """The generators of torch."""
    import torch

    torch.manual_seed(seed)


__getattr__ = others(__name__)
