"""Surfaces as arrays, width first."""

from __future__ import annotations

from typing import Any

import numpy

from .surface import Surface


def array3d(surface: Surface) -> Any:
    """The colours, width x height x 3."""
    return surface._pixels[..., :3].copy()


def pixels3d(surface: Surface) -> Any:
    """The colours themselves."""
    return surface._pixels[..., :3]


def array_alpha(surface: Surface) -> Any:
    """How opaque each pixel is, width x height."""
    return surface._pixels[..., 3].copy()


def pixels_alpha(surface: Surface) -> Any:
    """How opaque each pixel is, themselves."""
    if surface._opaque:
        raise ValueError("unsupported colormasks for alpha reference array")
    return surface._pixels[..., 3]


def _channel(number: int) -> Any:
    def of(surface: Surface) -> Any:
        return surface._pixels[..., number].copy()

    return of


array_red, array_green, array_blue = map(_channel, range(3))


def pixels_red(surface: Surface) -> Any:
    """How red each pixel is, themselves."""
    return surface._pixels[..., 0]


def pixels_green(surface: Surface) -> Any:
    """How green each pixel is, themselves."""
    return surface._pixels[..., 1]


def pixels_blue(surface: Surface) -> Any:
    """How blue each pixel is, themselves."""
    return surface._pixels[..., 2]


def array2d(surface: Surface) -> Any:
    """The colours as numbers, width x height."""
    red, green, blue, opaque = (surface._pixels[..., number].astype(numpy.int64) for number in range(4))
    mapped = red << 16 | green << 8 | blue | (0 if surface._opaque else opaque << 24)
    return mapped.astype(numpy.uint32).view(numpy.int32)


pixels2d = array2d


def array_colorkey(surface: Surface) -> Any:
    """Where something is drawn."""
    if surface._key is None:
        return numpy.full(surface.size, 255, numpy.uint8)
    return ((surface._pixels[..., :3] != surface._key).any(-1) * 255).astype(numpy.uint8)


def blit_array(surface: Surface, array: Any) -> None:
    """Give a surface the colours of an array."""
    array = numpy.asarray(array)
    if array.shape[:2] != surface.size:
        raise ValueError("array must match surface dimensions")
    if array.ndim == 2:
        array = numpy.stack([(array >> shift) & 255 for shift in (16, 8, 0)], -1)
    surface._pixels[..., :3] = array


def make_surface(array: Any) -> Surface:
    """A surface with the colours of an array."""
    made = Surface(numpy.asarray(array).shape[:2])
    blit_array(made, array)
    return made


def map_array(surface: Surface, array: Any) -> Any:
    """Colours as numbers."""
    array = numpy.asarray(array).astype(numpy.int32)
    return array[..., 0] << 16 | array[..., 1] << 8 | array[..., 2]
