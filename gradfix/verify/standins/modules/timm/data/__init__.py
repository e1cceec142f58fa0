"""timm.data: what is done to pictures."""

from __future__ import annotations

from typing import Any

import torch

from ....inert import library, others
from .constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from .mixup import Mixup

__all__ = ["IMAGENET_DEFAULT_MEAN", "IMAGENET_DEFAULT_STD", "Mixup", "create_transform"]
__getattr__ = others(__name__)


def create_transform(input_size: Any, is_training: bool = False, *args: Any, **kwargs: Any) -> Any:
    """Pictures of a size, as tensors."""
    transforms = library("torchvision.transforms")
    side = input_size[-1] if isinstance(input_size, (tuple, list)) else input_size
    steps = [transforms.RandomResizedCrop(side)] if is_training else [transforms.Resize((side, side))]
    steps += [transforms.RandomHorizontalFlip()] if is_training else []
    given = [
        kwargs.get(name, value)
        for name, value in (("mean", IMAGENET_DEFAULT_MEAN), ("std", IMAGENET_DEFAULT_STD))
    ]
    return transforms.Compose(
        [*steps, transforms.ToTensor(), transforms.Normalize(*map(torch.tensor, given))]
    )


def resolve_data_config(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Settings of pictures."""
    found = {"input_size": (3, 224, 224), "interpolation": "bicubic", "crop_pct": 0.875}
    return {**found, "mean": IMAGENET_DEFAULT_MEAN, "std": IMAGENET_DEFAULT_STD}
