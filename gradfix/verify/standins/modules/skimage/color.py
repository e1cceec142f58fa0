"""Colours."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


def rgb2gray(values: Any) -> Any:
    """Grey, between 0 and 1."""
    values = numpy.asarray(values)
    floats = values / 255.0 if values.dtype == numpy.uint8 else values
    return floats if floats.ndim == 2 else floats[..., :3] @ numpy.array([0.2125, 0.7154, 0.0721])


def gray2rgb(values: Any) -> Any:
    """Three times the same."""
    return numpy.stack([numpy.asarray(values)] * 3, -1)


def rgb2lab(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Values of the range of Lab: lightness up to 100, colours around 0."""
    values = numpy.asarray(values)
    floats = values / 255.0 if values.dtype == numpy.uint8 else values
    light = rgb2gray(floats)[..., None] * 100
    return numpy.concatenate([light, (floats[..., 1:3] - floats[..., :1]) * 100], -1)


def lab2rgb(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Values between 0 and 1."""
    return gray2rgb(numpy.asarray(values)[..., 0] / 100)


__getattr__ = others(__name__)
