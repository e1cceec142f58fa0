"""Surfaces: pictures as arrays of bytes, width x height x 4, of red, green, blue and how opaque."""

from __future__ import annotations

from typing import Any

from .color import Color
from .rect import Rect, rect

try:
    import numpy as numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

SRCALPHA = 65536


def parts(color: Any) -> tuple[int, int, int, int]:
    """The four parts of a colour; a number is one of ``map_rgb``."""
    if isinstance(color, int):
        return (color >> 16) & 255, (color >> 8) & 255, color & 255, (color >> 24) & 255 or 255
    red, green, blue, opaque = color if isinstance(color, Color) else Color(color)
    return red, green, blue, opaque


class Surface:
    """A picture; without numpy only its size is known."""

    def __init__(self, size: Any, flags: int = 0, depth: Any = 0, masks: Any = None) -> None:
        width, height = (int(one) for one in size)
        if width < 0 or height < 0:
            raise ValueError("Invalid resolution for Surface")
        self._size = width, height
        self._opaque = not flags & SRCALPHA
        self._alpha: int | None = None if self._opaque else 255
        self._key: tuple[int, int, int] | None = None
        self._parent: Surface | None = None
        self._corner = 0, 0
        self._clip = Rect(0, 0, width, height)
        self._pixels: Any = None
        if numpy is not None:
            self._pixels = numpy.zeros((width, height, 4), numpy.uint8)
            if self._opaque:
                self._pixels[..., 3] = 255

    def _like(self, pixels: Any) -> Surface:
        made = Surface(pixels.shape[:2], 0 if self._opaque else SRCALPHA)
        made._pixels = numpy.ascontiguousarray(pixels)
        made._alpha, made._key = self._alpha, self._key
        return made

    def __repr__(self) -> str:
        return f"<Surface({self._size[0]}x{self._size[1]}x32 SW)>"

    def get_size(self) -> tuple[int, int]:
        """Width and height."""
        return self._size

    def get_width(self) -> int:
        """Pixels in a row."""
        return self._size[0]

    def get_height(self) -> int:
        """Rows."""
        return self._size[1]

    size, width, height = property(get_size), property(get_width), property(get_height)

    def get_rect(self, **kwargs: Any) -> Rect:
        """The whole, moved to where it is told."""
        made = Rect(0, 0, *self._size)
        for name, value in kwargs.items():
            setattr(made, name, value)
        return made

    def get_flags(self) -> int:
        """Whether pixels say how opaque they are."""
        return 0 if self._opaque else SRCALPHA

    def get_bitsize(self) -> int:
        """Bits of a pixel."""
        return 32

    def get_bytesize(self) -> int:
        """Bytes of a pixel."""
        return 4

    def copy(self) -> Surface:
        """Another one of the same."""
        made = Surface(self._size, self.get_flags())
        made._alpha, made._key = self._alpha, self._key
        if numpy is not None:
            made._pixels = self._pixels.copy()
        return made

    def convert(self, *args: Any) -> Surface:
        """Without how opaque its pixels are."""
        made = self.copy()
        made._opaque = True
        if numpy is not None:
            made._pixels[..., 3] = 255
        return made

    def convert_alpha(self, *args: Any) -> Surface:
        """With how opaque its pixels are."""
        made = self.copy()
        if made._opaque and made._key is not None and numpy is not None:
            made._pixels[(made._pixels[..., :3] == made._key).all(-1), 3] = 0
        made._opaque, made._key = False, None
        return made

    def set_alpha(self, value: Any = None, *args: Any) -> None:
        """How opaque the whole is."""
        self._alpha = None if value is None else max(0, min(255, int(value)))

    def get_alpha(self) -> int | None:
        """How opaque the whole is."""
        return self._alpha

    def set_colorkey(self, color: Any = None, *args: Any) -> None:
        """The colour that is not drawn."""
        self._key = None if color is None else parts(color)[:3]

    def get_colorkey(self) -> tuple[int, int, int, int] | None:
        """The colour that is not drawn."""
        return None if self._key is None else (*self._key, 255)

    def set_clip(self, area: Any = None) -> None:
        """Where anything is drawn at all."""
        self._clip = self.get_rect() if area is None else self.get_rect().clip(area)

    def get_clip(self) -> Rect:
        """Where anything is drawn at all."""
        return self._clip.copy()

    def map_rgb(self, *color: Any) -> int:
        """A colour as a number."""
        red, green, blue, opaque = parts(color[0] if len(color) == 1 else color)
        return (0 if self._opaque else opaque << 24) | red << 16 | green << 8 | blue

    def unmap_rgb(self, value: int) -> Color:
        """The colour of a number."""
        return Color(*parts(value))

    def get_at(self, at: Any) -> Color:
        """The colour of a pixel."""
        x, y = (int(one) for one in at)
        if not (0 <= x < self._size[0] and 0 <= y < self._size[1]):
            raise IndexError("pixel index out of range")
        return Color(0, 0, 0) if numpy is None else Color(*self._pixels[x, y].tolist())

    def set_at(self, at: Any, color: Any) -> None:
        """Give a pixel a colour."""
        x, y = (int(one) for one in at)
        if numpy is not None and self._clip.collidepoint(x, y):
            self._pixels[x, y] = self._written(color)

    def _written(self, color: Any) -> tuple[int, ...]:
        found = parts(color)
        return (*found[:3], 255) if self._opaque else found

    def fill(self, color: Any, area: Any = None, special_flags: int = 0) -> Rect:
        """Give an area one colour."""
        where = self._clip if area is None else self._clip.clip(area)
        if numpy is not None and where:
            part = self._pixels[where.x : where.x + where.w, where.y : where.y + where.h]
            color = self._written(color)
            part[...] = mixed(part, numpy.array(color), special_flags) if special_flags else color
        return where.copy()

    def blit(self, source: Surface, dest: Any, area: Any = None, special_flags: int = 0) -> Rect:
        """Draw another one, or an area of it, at a point; what that came to."""
        at = tuple(dest)[:2]
        taken = source.get_rect() if area is None else Rect(area)
        x, y = int(at[0]) - min(taken.x, 0), int(at[1]) - min(taken.y, 0)
        taken = source.get_rect().clip(taken)
        where = self._clip.clip((x, y, taken.w, taken.h))
        if not where:
            return Rect(max(x, 0), max(y, 0), 0, 0)
        if numpy is not None:
            left, top = taken.x + where.x - x, taken.y + where.y - y
            drawn = source._pixels[left : left + where.w, top : top + where.h]
            part = self._pixels[where.x : where.x + where.w, where.y : where.y + where.h]
            if special_flags:
                part[...] = mixed(part, drawn, special_flags)
            else:
                self._draw(part, drawn, source)
        return where

    def _draw(self, part: Any, drawn: Any, source: Surface) -> None:
        opaque = drawn[..., 3:].astype(int)
        if source._alpha is not None:
            opaque = opaque * source._alpha // 255
        if source._key is not None:
            opaque = opaque * (drawn[..., :3] != source._key).any(-1, keepdims=True)
        if (opaque == 255).all():
            part[...] = drawn
            return
        under = part.astype(int)
        colors = (drawn[..., :3] * opaque + under[..., :3] * (255 - opaque)) // 255
        # What nothing lies under keeps its own colour.
        bare = (under[..., 3:] == 0) & (opaque > 0)
        part[..., :3] = numpy.where(bare, drawn[..., :3], colors)
        part[..., 3:] = opaque + under[..., 3:] - opaque * under[..., 3:] // 255

    def blits(self, sequence: Any, doreturn: Any = True) -> Any:
        """Draw several."""
        found = [self.blit(*one) for one in sequence]
        return found if doreturn else None

    def subsurface(self, *area: Any) -> Surface:
        """An area that shares its pixels."""
        where = rect(*area)
        if not self.get_rect().contains(where):
            raise ValueError("subsurface rectangle outside surface area")
        made = Surface(where.size, self.get_flags())
        made._alpha, made._key, made._parent, made._corner = self._alpha, self._key, self, where.topleft
        if numpy is not None:
            made._pixels = self._pixels[where.x : where.x + where.w, where.y : where.y + where.h]
        return made

    def get_parent(self) -> Surface | None:
        """What it is an area of."""
        return self._parent

    def get_offset(self) -> tuple[int, int]:
        """Where that area begins."""
        return self._corner

    def scroll(self, dx: int = 0, dy: int = 0) -> None:
        """Move the picture; what nothing comes to stays."""
        had = self.copy()
        self.blit(had.convert(), (dx, dy))

    def get_bounding_rect(self, min_alpha: int = 1) -> Rect:
        """The smallest area with all pixels that are not transparent."""
        if numpy is None or self._opaque:
            return self.get_rect()
        held = (self._pixels[..., 3] >= min_alpha).nonzero()
        if not len(held[0]):
            return Rect(0, 0, 0, 0)
        left, top = int(held[0].min()), int(held[1].min())
        return Rect(left, top, int(held[0].max()) + 1 - left, int(held[1].max()) + 1 - top)

    def lock(self) -> None:
        """Nothing is locked."""

    unlock = lock

    def get_locked(self) -> bool:
        """Nothing is locked."""
        return False

    def mustlock(self) -> bool:
        """Nothing is locked."""
        return False


def mixed(under: Any, over: Any, how: int) -> Any:
    """Two pictures as a flag has them mixed; the smaller flags leave out how opaque they are."""
    a, b = under.astype(int), over.astype(int)
    ways: dict[int, Any] = {
        1: lambda: a + b,
        2: lambda: a - b,
        3: lambda: a * b // 255,
        4: lambda: numpy.minimum(a, b),
        5: lambda: numpy.maximum(a, b),
    }
    ways |= {6: ways[1], 7: ways[2], 8: ways[3], 9: ways[4], 16: ways[5]}
    found = ways.get(how, lambda: b + numpy.zeros_like(a))()
    if how in (1, 2, 3, 4, 5):
        found[..., 3] = a[..., 3]
    return found.clip(0, 255).astype(numpy.uint8)
