"""kornia: changes of pictures that are tensors."""

from ...inert import others
from . import augmentation

__all__ = ["augmentation"]
__getattr__ = others(__name__)
