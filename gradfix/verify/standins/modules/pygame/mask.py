"""Which pixels of a picture are there."""

from __future__ import annotations

from typing import Any

import numpy

from .rect import Rect
from .surface import Surface


class Mask:
    """Bits, width x height."""

    def __init__(self, size: Any, fill: bool = False) -> None:
        self._bits = numpy.full(tuple(map(int, size)), bool(fill))

    def get_size(self) -> tuple[int, int]:
        """Width and height."""
        return self._bits.shape[0], self._bits.shape[1]

    def get_rect(self, **kwargs: Any) -> Rect:
        """The whole, moved to where it is told."""
        made = Rect(0, 0, *self.get_size())
        for name, value in kwargs.items():
            setattr(made, name, value)
        return made

    def get_at(self, at: Any) -> int:
        """Whether a pixel is there."""
        return int(self._bits[tuple(at)])

    def set_at(self, at: Any, value: Any = 1) -> None:
        """Say whether a pixel is there."""
        self._bits[tuple(at)] = bool(value)

    def count(self) -> int:
        """How many are there."""
        return int(self._bits.sum())

    def copy(self) -> Mask:
        """Another one of the same."""
        made = Mask(self.get_size())
        made._bits = self._bits.copy()
        return made

    def fill(self) -> None:
        """All are there."""
        self._bits[...] = True

    def clear(self) -> None:
        """None is there."""
        self._bits[...] = False

    def invert(self) -> None:
        """Those are there that were not."""
        self._bits = ~self._bits

    def _shared(self, other: Mask, offset: Any) -> tuple[Any, int, int]:
        x, y = (int(one) for one in offset)
        both = Rect(0, 0, *self.get_size()).clip((x, y, *other.get_size()))
        mine = self._bits[both.x : both.x + both.w, both.y : both.y + both.h]
        theirs = other._bits[both.x - x : both.x - x + both.w, both.y - y : both.y - y + both.h]
        return mine & theirs, both.x, both.y

    def overlap(self, other: Mask, offset: Any) -> tuple[int, int] | None:
        """A pixel that is there in both, if there is one."""
        shared, x, y = self._shared(other, offset)
        found = numpy.argwhere(shared)
        return (int(found[0][0]) + x, int(found[0][1]) + y) if len(found) else None

    def overlap_area(self, other: Mask, offset: Any) -> int:
        """How many pixels are there in both."""
        return int(self._shared(other, offset)[0].sum())

    def get_bounding_rects(self) -> list[Rect]:
        """One around all that is there."""
        found = numpy.argwhere(self._bits)
        if not len(found):
            return []
        (left, top), (right, bottom) = found.min(0).tolist(), found.max(0).tolist()
        return [Rect(left, top, right - left + 1, bottom - top + 1)]


def from_surface(surface: Surface, threshold: int = 127) -> Mask:
    """The pixels that are opaque enough, or do not have the colour that is not drawn."""
    made = Mask(surface.get_size())
    if surface._key is not None:
        made._bits = (surface._pixels[..., :3] != surface._key).any(-1)
    else:
        made._bits = surface._pixels[..., 3] > threshold
    return made
