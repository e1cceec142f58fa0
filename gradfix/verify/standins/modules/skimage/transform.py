"""Sizes of pictures."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others
from ..cv2 import resize as scaled


def resize(values: Any, output_shape: Any, *args: Any, **kwargs: Any) -> Any:
    """Another size (height, width), values between 0 and 1."""
    values = numpy.asarray(values)
    floats = values / 255.0 if values.dtype == numpy.uint8 else values.astype(float)
    return scaled(floats, (output_shape[1], output_shape[0]))


def rescale(values: Any, scale: float, *args: Any, **kwargs: Any) -> Any:
    """Another size by a factor."""
    return resize(values, (round(values.shape[0] * scale), round(values.shape[1] * scale)))


def pyramid_expand(values: Any, upscale: float = 2, *args: Any, **kwargs: Any) -> Any:
    """Larger by a factor, as smooth as it is."""
    return rescale(values, upscale)


def pyramid_reduce(values: Any, downscale: float = 2, *args: Any, **kwargs: Any) -> Any:
    """Smaller by a factor, as smooth as it is."""
    return rescale(values, 1 / downscale)


def rotate(values: Any, angle: float, *args: Any, **kwargs: Any) -> Any:
    """As it is."""
    return numpy.asarray(values, float)


__getattr__ = others(__name__)
