"""``PIL.ImageDraw``: areas are filled; lines and letters are left out."""

from __future__ import annotations

from typing import Any

import torch

from . import Image


def _points(xy: Any) -> torch.Tensor:
    """Points of any notation, as rows of x and y."""
    flat = [number for one in xy for number in (one if isinstance(one, (tuple, list)) else (one,))]
    return torch.tensor([float(one) for one in flat]).reshape(-1, 2)


class ImageDraw:
    """Draws into a picture."""

    def __init__(self, im: Image.Image, mode: str | None = None) -> None:
        self.im = im

    def _fill(self, inside: torch.Tensor, colour: Any) -> None:
        if colour is None:
            return
        if isinstance(colour, str):
            colour = 255  # Nobody asks what a name looks like.
        shades = [int(one) for one in colour] if isinstance(colour, (tuple, list)) else [int(colour)]
        channels = self.im.pixels.shape[2]
        shades = (shades * channels)[:channels] if len(shades) == 1 else shades[:channels]
        self.im.pixels[inside] = torch.tensor(shades).clamp(0, 255).to(torch.uint8)

    def _grid(self) -> tuple[torch.Tensor, torch.Tensor]:
        down, across = torch.arange(self.im.height), torch.arange(self.im.width)
        return down[:, None].float(), across[None, :].float()

    def rectangle(self, xy: Any, fill: Any = None, outline: Any = None, width: int = 1) -> None:
        """From one corner to the other."""
        (left, top), (right, bottom) = _points(xy).tolist()
        y, x = self._grid()
        self._fill((x >= left) & (x <= right) & (y >= top) & (y <= bottom), fill)

    def ellipse(self, xy: Any, fill: Any = None, outline: Any = None, width: int = 1) -> None:
        """Within the same."""
        (left, top), (right, bottom) = _points(xy).tolist()
        y, x = self._grid()
        wide, high = max(right - left, 1) / 2, max(bottom - top, 1) / 2
        self._fill((((x - left) / wide - 1) ** 2 + ((y - top) / high - 1) ** 2) <= 1, fill)

    def polygon(self, xy: Any, fill: Any = None, outline: Any = None, width: int = 1) -> None:
        """Within an outline: an odd number of its edges lie to the left of each pixel."""
        points = _points(xy)
        y, x = self._grid()
        inside = torch.zeros(self.im.height, self.im.width, dtype=torch.bool)
        for (x0, y0), (x1, y1) in zip(points.tolist(), points.roll(-1, 0).tolist()):
            if y0 != y1:
                inside ^= ((y0 <= y) != (y1 <= y)) & (x0 + (y - y0) * (x1 - x0) / (y1 - y0) <= x)
        self._fill(inside, fill if fill is not None else outline)

    def line(self, *args: Any, **kwargs: Any) -> None:
        """Left out."""

    point = arc = chord = text = multiline_text = line

    def textsize(self, text: str, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """As small letters would need it."""
        return 6 * len(text), 11

    def textbbox(self, xy: Any, text: str, *args: Any, **kwargs: Any) -> tuple[int, int, int, int]:
        """The same, from a place."""
        return int(xy[0]), int(xy[1]), int(xy[0]) + 6 * len(text), int(xy[1]) + 11


Draw = ImageDraw
