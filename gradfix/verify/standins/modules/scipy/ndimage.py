"""Pictures and volumes: sizes are right, and a filter is left out."""

from __future__ import annotations

import sys
from typing import Any

import numpy
import torch

from ...inert import others


def zoom(values: Any, factor: Any, *args: Any, **kwargs: Any) -> Any:
    """Another size, by the nearest neighbours."""
    values = numpy.asarray(values)
    factors = [factor] * values.ndim if isinstance(factor, (int, float)) else list(factor)
    for axis, one in enumerate(factors):
        length = max(1, round(values.shape[axis] * one))
        rows = numpy.minimum((numpy.arange(length) / one).astype(int), values.shape[axis] - 1)
        values = numpy.take(values, rows, axis)
    return values


def rotate(values: Any, angle: float, *args: Any, **kwargs: Any) -> Any:
    """Turned by the nearest quarter that keeps the size."""
    values = numpy.asarray(values)
    quarters = round(angle / 90) % 4
    if values.shape[0] != values.shape[1]:
        quarters -= quarters % 2
    return numpy.rot90(values, quarters, (0, 1)).copy()


def gaussian_filter(values: Any, sigma: Any = 1.0, *args: Any, **kwargs: Any) -> Any:
    """As it is."""
    return numpy.array(values)


uniform_filter = median_filter = gaussian_filter1d = uniform_filter1d = gaussian_filter
map_coordinates = shift = binary_dilation = binary_erosion = maximum_filter = gaussian_filter
convolve = convolve1d = correlate = correlate1d = minimum_filter = gaussian_filter
binary_fill_holes = grey_dilation = grey_erosion = gaussian_filter


def distance_transform_edt(values: Any, *args: Any, **kwargs: Any) -> Any:
    """A distance for each place: here one for everything that is something."""
    return (numpy.asarray(values) != 0).astype(numpy.float64)


def label(values: Any, *args: Any, **kwargs: Any) -> Any:
    """All that is something is one object."""
    found = (numpy.asarray(values) != 0).astype(numpy.int32)
    return found, int(torch.as_tensor(found).any())


filters = interpolation = measurements = morphology = fourier = sys.modules[__name__]
"""Older places of the same functions."""
__getattr__ = others(__name__)
