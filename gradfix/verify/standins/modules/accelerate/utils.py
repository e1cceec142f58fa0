"""accelerate.utils."""

from __future__ import annotations

import enum
import random
from typing import Any

import torch

from ...inert import others


class DistributedType(str, enum.Enum):  # noqa: UP042
    """There is one process."""

    NO = "NO"
    MULTI_GPU = "MULTI_GPU"
    DEEPSPEED = "DEEPSPEED"
    FSDP = "FSDP"
    XLA = "XLA"


class Settings:
    """How several processes would work together."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)


DistributedDataParallelKwargs = GradScalerKwargs = InitProcessGroupKwargs = ProjectConfiguration = Settings
DataLoaderConfiguration = GradientAccumulationPlugin = AutocastKwargs = Settings


def set_seed(seed: int, *args: Any, **kwargs: Any) -> None:
    """Seed the generators."""
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(seed % 2**32)


def gather_object(values: Any) -> Any:
    """Those of one process."""
    return values


gather = broadcast = reduce = gather_object


def is_wandb_available() -> bool:
    """It would only log."""
    return False


is_tensorboard_available = is_xformers_available = is_deepspeed_available = is_wandb_available
__getattr__ = others(__name__)
