"""skimage: pictures as arrays."""

from ...inert import others

__getattr__ = others(__name__)
