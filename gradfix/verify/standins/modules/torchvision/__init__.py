"""torchvision: data sets, transformations, networks, grids of pictures, boxes and files."""

from typing import Any

from ...inert import others
from . import datasets, models, transforms, utils

__version__ = "0.20.0"
__all__ = ["datasets", "models", "set_image_backend", "transforms", "utils"]


def set_image_backend(name: str) -> None:
    """There is one."""


def get_image_backend() -> str:
    """That one."""
    return "PIL"


def disable_beta_transforms_warning(*args: Any) -> None:
    """Nothing is warned of."""


__getattr__ = others(__name__)
