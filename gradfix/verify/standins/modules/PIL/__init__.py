"""PIL: pictures of bytes, as far as data pipelines need them."""

from . import Image

__version__ = "11.0.0"
__all__ = ["Image"]
