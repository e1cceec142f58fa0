"""skimage: pictures as arrays."""

from ...inert import others
from .util import img_as_float, img_as_float32, img_as_float64, img_as_ubyte

__all__ = ["img_as_float", "img_as_float32", "img_as_float64", "img_as_ubyte"]
__getattr__ = others(__name__)
