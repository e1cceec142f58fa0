"""``PIL.ImageOps``: what is done to the values of pictures, and to their edges."""

from __future__ import annotations

from typing import Any

import torch

from . import Image


def _scaled(picture: Image.Image, values: torch.Tensor) -> Image.Image:
    return Image.Image(values.round().clamp(0, 255).to(torch.uint8), picture.mode)


def autocontrast(image: Image.Image, *args: Any, **kwargs: Any) -> Image.Image:
    """Each channel from its darkest value to its lightest."""
    values = image.pixels.to(torch.float32)
    low, high = values.amin((0, 1)), values.amax((0, 1))
    return _scaled(image, (values - low) * 255 / (high - low).clamp(min=1))


def equalize(image: Image.Image, mask: Any = None) -> Image.Image:
    """Each channel with as many dark values as light ones."""
    channels = []
    for values in image.pixels.long().unbind(-1):
        below = torch.bincount(values.reshape(-1), minlength=256).cumsum(0)
        channels.append((below - below[values.min()]) * 255 // (values.numel() - below[values.min()] or 1))
        channels[-1] = channels[-1][values]
    return _scaled(image, torch.stack(channels, -1).float())


def invert(image: Image.Image) -> Image.Image:
    """Light where it was dark."""
    return image._like(255 - image.pixels)


def solarize(image: Image.Image, threshold: float = 128) -> Image.Image:
    """Inverted where it is light."""
    return image._like(torch.where(image.pixels >= threshold, 255 - image.pixels, image.pixels))


def posterize(image: Image.Image, bits: int) -> Image.Image:
    """The first bits of each value."""
    return image._like(image.pixels & (256 - 2 ** (8 - int(bits))))


def grayscale(image: Image.Image) -> Image.Image:
    """Without colours."""
    return image.convert("L")


def mirror(image: Image.Image) -> Image.Image:
    """Left and right exchanged."""
    return image.transpose(Image.FLIP_LEFT_RIGHT)


def flip(image: Image.Image) -> Image.Image:
    """Upside down."""
    return image.transpose(Image.FLIP_TOP_BOTTOM)


def exif_transpose(image: Image.Image, **kwargs: Any) -> Image.Image:
    """As the camera was held: upright."""
    return image.copy()


def _edges(border: Any) -> tuple[int, int, int, int]:
    if not isinstance(border, (tuple, list)):
        return (int(border),) * 4
    left, top, right, bottom = border if len(border) == 4 else (*border, *border)
    return int(left), int(top), int(right), int(bottom)


def expand(image: Image.Image, border: Any = 0, fill: Any = 0) -> Image.Image:
    """With an edge around it."""
    left, top, right, bottom = _edges(border)
    made = Image.new(image.mode, (image.width + left + right, image.height + top + bottom), fill)
    made.paste(image, (left, top))
    return made


def crop(image: Image.Image, border: Any = 0) -> Image.Image:
    """Without its edge."""
    left, top, right, bottom = _edges(border)
    return image.crop((left, top, image.width - right, image.height - bottom))


def contain(image: Image.Image, size: Any, *args: Any, **kwargs: Any) -> Image.Image:
    """As large as it fits into a size."""
    ratio = min(size[0] / image.width, size[1] / image.height)
    return image.resize((max(1, round(image.width * ratio)), max(1, round(image.height * ratio))))


def pad(
    image: Image.Image, size: Any, method: Any = None, color: Any = 0, *args: Any, **kwargs: Any
) -> Image.Image:
    """As large as it fits into a size, with edges."""
    inner, made = contain(image, size), Image.new(image.mode, size, color or 0)
    made.paste(inner, ((size[0] - inner.width) // 2, (size[1] - inner.height) // 2))
    return made


def fit(image: Image.Image, size: Any, *args: Any, **kwargs: Any) -> Image.Image:
    """Of a size, without what does not fit into it."""
    ratio = max(size[0] / image.width, size[1] / image.height)
    inner = image.resize(
        (max(size[0], round(image.width * ratio)), max(size[1], round(image.height * ratio)))
    )
    left, top = (inner.width - size[0]) // 2, (inner.height - size[1]) // 2
    return inner.crop((left, top, left + size[0], top + size[1]))


def scale(image: Image.Image, factor: float, *args: Any) -> Image.Image:
    """Some times as large."""
    return image.resize((round(image.width * factor), round(image.height * factor)))
