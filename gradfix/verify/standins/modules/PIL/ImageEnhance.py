"""``PIL.ImageEnhance``: a picture between one that lacks something and itself, or beyond."""

from __future__ import annotations

import torch

from . import Image


class _Enhance:
    """``enhance(0)`` gives the picture without, ``enhance(1)`` the picture itself."""

    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self.without = self.lacking(image)

    def lacking(self, image: Image.Image) -> Image.Image:
        """A picture without what is to be enhanced."""
        return image

    def enhance(self, factor: float) -> Image.Image:
        """A picture with more or less of it."""
        return Image.blend(self.without, self.image, float(factor))


class Brightness(_Enhance):
    """How light a picture is."""

    def lacking(self, image: Image.Image) -> Image.Image:
        """Black."""
        return image._like(torch.zeros_like(image.pixels))


class Contrast(_Enhance):
    """How far dark and light are apart."""

    def lacking(self, image: Image.Image) -> Image.Image:
        """One grey."""
        mean = image.convert("L").pixels.to(torch.float32).mean()
        return image._like(torch.full_like(image.pixels, int(mean + 0.5)))


class Color(_Enhance):
    """How much colour there is."""

    def lacking(self, image: Image.Image) -> Image.Image:
        """Shades of grey."""
        return image.convert("L").convert(image.mode)


class Sharpness(_Enhance):
    """How clear edges are: filters change nothing here."""
