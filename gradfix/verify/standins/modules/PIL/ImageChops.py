"""``PIL.ImageChops``: the values of two pictures, one with the other."""

from __future__ import annotations

import torch

from . import Image


def _both(one: Image.Image, other: Image.Image, values: torch.Tensor) -> Image.Image:
    return Image.Image(values.clamp(0, 255).to(torch.uint8), one.mode)


def offset(image: Image.Image, xoffset: int, yoffset: int | None = None) -> Image.Image:
    """Moved; what leaves it on one side comes in on the other."""
    down = xoffset if yoffset is None else yoffset
    return image._like(image.pixels.roll((int(down), int(xoffset)), (0, 1)))


def invert(image: Image.Image) -> Image.Image:
    """Light where it was dark."""
    return image._like(255 - image.pixels)


def add(one: Image.Image, other: Image.Image, scale: float = 1.0, offset: float = 0) -> Image.Image:
    """Their sum."""
    return _both(one, other, (one.pixels.float() + other.pixels.float()) / scale + offset)


def subtract(one: Image.Image, other: Image.Image, scale: float = 1.0, offset: float = 0) -> Image.Image:
    """How much lighter the first is."""
    return _both(one, other, (one.pixels.float() - other.pixels.float()) / scale + offset)


def difference(one: Image.Image, other: Image.Image) -> Image.Image:
    """How far they are apart."""
    return _both(one, other, (one.pixels.float() - other.pixels.float()).abs())


def multiply(one: Image.Image, other: Image.Image) -> Image.Image:
    """As dark as both together."""
    return _both(one, other, one.pixels.float() * other.pixels.float() / 255)


def lighter(one: Image.Image, other: Image.Image) -> Image.Image:
    """The lighter of both."""
    return _both(one, other, torch.maximum(one.pixels, other.pixels))


def darker(one: Image.Image, other: Image.Image) -> Image.Image:
    """The darker of both."""
    return _both(one, other, torch.minimum(one.pixels, other.pixels))
