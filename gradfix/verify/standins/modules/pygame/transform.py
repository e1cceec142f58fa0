"""Surfaces of other sizes, turned and mirrored: each pixel is that of the nearest place."""

from __future__ import annotations

import math
from typing import Any

from .surface import SRCALPHA, Surface, numpy


def _into(made: Surface, dest: Surface | None) -> Surface:
    if dest is None:
        return made
    if numpy is not None:
        dest._pixels[...] = made._pixels
    return dest


def scale(surface: Surface, size: Any, dest_surface: Surface | None = None) -> Surface:
    """Of another size."""
    wide, high = (int(one) for one in size)
    if wide < 0 or high < 0:
        raise ValueError("Cannot scale to negative size")
    if numpy is None or not (wide and high):
        return Surface((wide, high), surface.get_flags())
    columns = numpy.arange(wide) * surface.width // wide
    rows = numpy.arange(high) * surface.height // high
    return _into(surface._like(surface._pixels[columns][:, rows]), dest_surface)


smoothscale = scale


def scale_by(surface: Surface, factor: Any, dest_surface: Surface | None = None) -> Surface:
    """Some times as large."""
    x, y = factor if isinstance(factor, (tuple, list)) else (factor, factor)
    return scale(surface, (surface.width * x, surface.height * y), dest_surface)


smoothscale_by = scale_by


def scale2x(surface: Surface, dest_surface: Surface | None = None) -> Surface:
    """Twice as large."""
    return scale(surface, (2 * surface.width, 2 * surface.height), dest_surface)


def flip(surface: Surface, flip_x: Any, flip_y: Any = False) -> Surface:
    """Mirrored."""
    if numpy is None:
        return surface.copy()
    return surface._like(surface._pixels[:: -1 if flip_x else 1, :: -1 if flip_y else 1])


def rotate(surface: Surface, angle: float) -> Surface:
    """Turned against the clock, by degrees; what is new is transparent, or as the first pixel is."""
    quarters = round(angle / 90)
    if angle == 90 * quarters:
        if numpy is None:
            return Surface(surface.size[:: -1 if quarters % 2 else 1], surface.get_flags())
        return surface._like(numpy.rot90(surface._pixels, -quarters % 4).copy())
    a, b = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    wide = max(int(abs(surface.width * a) + abs(surface.height * b)), 1)
    high = max(int(abs(surface.width * b) + abs(surface.height * a)), 1)
    if numpy is None:
        return Surface((wide, high), surface.get_flags())
    x, y = numpy.meshgrid(numpy.arange(wide), numpy.arange(high), indexing="ij")
    across, down = x - (wide - 1) / 2, y - (high - 1) / 2
    left = numpy.rint(a * across - b * down + (surface.width - 1) / 2).astype(int)
    top = numpy.rint(b * across + a * down + (surface.height - 1) / 2).astype(int)
    within = (left >= 0) & (left < surface.width) & (top >= 0) & (top < surface.height)
    taken = surface._pixels[left.clip(0, surface.width - 1), top.clip(0, surface.height - 1)]
    outside = surface._pixels[0, 0].copy()
    if not surface._opaque:
        outside[3] = 0
    return surface._like(numpy.where(within[..., None], taken, outside))


def rotozoom(surface: Surface, angle: float, factor: float) -> Surface:
    """Turned and of another size."""
    scaled = scale(surface, (max(int(surface.width * factor), 1), max(int(surface.height * factor), 1)))
    return rotate(scaled.convert_alpha(), angle)


def chop(surface: Surface, area: Any) -> Surface:
    """Without the rows and columns of an area."""
    where = surface.get_rect().clip(area)
    made = Surface((surface.width - where.w, surface.height - where.h), surface.get_flags() & SRCALPHA)
    if numpy is not None:
        kept = numpy.delete(surface._pixels, range(where.x, where.x + where.w), 0)
        made._pixels = numpy.delete(kept, range(where.y, where.y + where.h), 1)
    return made


def average_color(surface: Surface, *args: Any) -> tuple[int, ...]:
    """The mean of all."""
    return (0, 0, 0, 0) if numpy is None else tuple(surface._pixels.mean((0, 1)).astype(int).tolist())


def grayscale(surface: Surface, dest_surface: Surface | None = None) -> Surface:
    """Without colours."""
    made = surface.copy()
    if numpy is not None:
        made._pixels[..., :3] = (made._pixels[..., :3] @ numpy.array([0.299, 0.587, 0.114]))[..., None]
    return _into(made, dest_surface)
