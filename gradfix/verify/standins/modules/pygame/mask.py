"""Where surfaces cover what is below them, pixel by pixel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rect import Rect
from .surface import Surface


class Mask:
    """A bit for each pixel."""

    def __init__(self, size: Any = (0, 0), fill: bool = False) -> None:
        self.bits = np.full((int(size[0]), int(size[1])), bool(fill))

    def copy(self) -> Mask:
        """The same again."""
        made = Mask()
        made.bits = self.bits.copy()
        return made

    __copy__ = copy

    def get_size(self) -> tuple[int, int]:
        """Width and height."""
        return int(self.bits.shape[0]), int(self.bits.shape[1])

    def get_rect(self, **where: Any) -> Rect:
        """Its rectangle, moved to where it is said."""
        found = Rect(0, 0, *self.get_size())
        for name, value in where.items():
            setattr(found, name, value)
        return found

    def get_at(self, at: Any) -> int:
        """The bit of a pixel."""
        if not self.get_rect().collidepoint(*at):
            raise IndexError(f"{at[0]}, {at[1]} is out of bounds")
        return int(self.bits[int(at[0]), int(at[1])])

    def set_at(self, at: Any, value: int = 1) -> None:
        """Change the bit of a pixel."""
        self.bits[int(at[0]), int(at[1])] = bool(value)

    def _both(self, other: Mask, offset: Any) -> tuple[Any, Any]:
        """The bits of both where they lie over each other."""
        x, y = int(offset[0]), int(offset[1])
        held = other.bits[max(0, -x) :, max(0, -y) :]
        mine = self.bits[max(0, x) :, max(0, y) :]
        wide, high = min(held.shape[0], mine.shape[0]), min(held.shape[1], mine.shape[1])
        return mine[:wide, :high], held[:wide, :high]

    def overlap(self, other: Mask, offset: Any) -> tuple[int, int] | None:
        """A pixel that both have."""
        mine, its = self._both(other, offset)
        found = np.argwhere(mine & its)
        if not len(found):
            return None
        return int(found[0][0]) + max(0, int(offset[0])), int(found[0][1]) + max(0, int(offset[1]))

    def overlap_area(self, other: Mask, offset: Any) -> int:
        """How many pixels both have."""
        mine, its = self._both(other, offset)
        return int((mine & its).sum())

    def overlap_mask(self, other: Mask, offset: Any) -> Mask:
        """The pixels that both have."""
        made = Mask(self.get_size())
        mine, its = self._both(other, offset)
        made._both(other, offset)[0][:] = mine & its
        return made

    def draw(self, other: Mask, offset: Any) -> None:
        """Take another one's pixels."""
        mine, its = self._both(other, offset)
        mine |= its

    def erase(self, other: Mask, offset: Any) -> None:
        """Leave out another one's pixels."""
        mine, its = self._both(other, offset)
        mine &= ~its

    def count(self) -> int:
        """How many pixels it has."""
        return int(self.bits.sum())

    def centroid(self) -> tuple[int, int]:
        """The middle of its pixels."""
        found = np.argwhere(self.bits)
        return (int(found[:, 0].mean()), int(found[:, 1].mean())) if len(found) else (0, 0)

    def get_bounding_rects(self) -> list[Rect]:
        """The rectangle around its pixels, whether they hang together or not."""
        found = np.argwhere(self.bits)
        return [Rect(*found.min(0), *(np.ptp(found, 0) + 1))] if len(found) else []

    def outline(self, every: int = 1) -> list[tuple[int, int]]:
        """Its pixels at an edge, in no order."""
        around = np.pad(self.bits, 1)
        inner = around[:-2, 1:-1] & around[2:, 1:-1] & around[1:-1, :-2] & around[1:-1, 2:]
        return [(int(x), int(y)) for x, y in np.argwhere(self.bits & ~inner)[::every]]

    def fill(self) -> None:
        """All pixels."""
        self.bits[:] = True

    def clear(self) -> None:
        """No pixels."""
        self.bits[:] = False

    def invert(self) -> None:
        """The other pixels."""
        self.bits[:] = ~self.bits

    def scale(self, size: Any) -> Mask:
        """Another size."""
        made = Mask(size)
        x = np.arange(int(size[0])) * self.bits.shape[0] // max(1, int(size[0]))
        y = np.arange(int(size[1])) * self.bits.shape[1] // max(1, int(size[1]))
        made.bits = self.bits[x[:, None], y]
        return made

    def to_surface(self, surface: Any = None, *args: Any, **kwargs: Any) -> Surface:
        """White where it has pixels, else black; or as is said."""
        colours = kwargs.get("setcolor", (255, 255, 255, 255)), kwargs.get("unsetcolor", (0, 0, 0, 255))
        made = surface if surface is not None else Surface(self.get_size(), 1 << 16)
        wide, high = (min(pair) for pair in zip(self.get_size(), made.get_size()))
        for colour, bits in zip(colours, (self.bits, ~self.bits)):
            if colour is not None:
                made.held[:wide, :high][bits[:wide, :high]] = made.colour(colour)
        return made


MaskType = Mask


def from_surface(surface: Surface, threshold: int = 127) -> Mask:
    """Where a surface covers what is below it: all but its key, or what has more than so much alpha."""
    made = Mask()
    if surface.key is not None:
        made.bits = (surface.held[..., :3] != surface.key[:3]).any(-1)
    else:
        made.bits = surface.alphas(own=True) > threshold
    return made


def from_threshold(surface: Surface, color: Any, threshold: Any = (0, 0, 0, 255), *args: Any) -> Mask:
    """Where a surface has about a colour."""
    made = Mask()
    near = np.array([int(one) for one in threshold])[2::-1]
    apart = abs(surface.held[..., :3].astype(int) - surface.colour(color)[:3].astype(int))
    made.bits = (apart <= near).all(-1)
    return made
