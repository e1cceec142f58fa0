"""torchvision: data sets, transformations, networks and grids of pictures."""

from . import datasets, models, transforms, utils

__version__ = "0.20.0"
__all__ = ["datasets", "models", "set_image_backend", "transforms", "utils"]


def set_image_backend(name: str) -> None:
    """There is one."""
