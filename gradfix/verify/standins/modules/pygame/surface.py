"""Surfaces: pictures in memory, on which others are put."""

from __future__ import annotations

from typing import Any

import numpy as np

from .color import Color, four
from .constants import FLAGS
from .rect import Rect, sides

SRCALPHA = FLAGS["SRCALPHA"]
HIDDEN = 255
"""The alpha of what covers all."""


def stored(colour: Any) -> Any:
    """A colour in the order of a surface: blue, green, red, alpha. A number is one of pixels."""
    if isinstance(colour, (int, np.integer)):
        return np.array([int(colour) >> shift & 255 for shift in (0, 8, 16, 24)], np.uint8)
    red, green, blue, alpha = colour if isinstance(colour, Color) else four(colour)
    return np.array([blue, green, red, alpha], np.uint8)


class Surface:
    """A picture. Bytes of width x height x 4, in the order blue, green, red, alpha: seen as whole numbers,
    they are the pixels that arrays of two dimensions hold. Without alpha of its own, the fourth is 0."""

    def __init__(self, size: Any = (0, 0), flags: int = 0, depth: Any = 0, masks: Any = None) -> None:
        if size[0] < 0 or size[1] < 0:
            from . import error

            raise error("Invalid resolution for Surface")
        self.held = np.zeros((int(size[0]), int(size[1]), 4), np.uint8)
        self.has_alpha: bool = bool(flags & SRCALPHA) or (isinstance(depth, Surface) and depth.has_alpha)
        self.key: Any = None
        self.opacity: int | None = None
        self.clipped: Rect | None = None
        self.parent: Surface | None = None
        self.offset = (0, 0)

    def like(self, held: Any) -> Surface:
        """A surface of other bytes, which is else as this one."""
        made = Surface((0, 0))
        made.held, made.has_alpha = held, self.has_alpha
        made.key, made.opacity = self.key, self.opacity
        return made

    def get_width(self) -> int:
        """Pixels from left to right."""
        return int(self.held.shape[0])

    def get_height(self) -> int:
        """Pixels from top to bottom."""
        return int(self.held.shape[1])

    def get_size(self) -> tuple[int, int]:
        """Width and height."""
        return self.get_width(), self.get_height()

    width = property(get_width)
    height = property(get_height)
    size = property(get_size)

    def get_rect(self, **where: Any) -> Rect:
        """Its rectangle, moved to where it is said."""
        found = Rect(0, 0, *self.get_size())
        for name, value in where.items():
            setattr(found, name, value)
        return found

    def copy(self) -> Surface:
        """The same again."""
        return self.like(self.held.copy())

    __copy__ = copy

    def convert(self, *args: Any) -> Surface:
        """Without alpha of its own, unless another surface or flags have it."""
        wanted = args[0] if args else None
        if isinstance(wanted, Surface):
            alpha = wanted.has_alpha
        else:
            alpha = bool(args and isinstance(args[-1], int) and args[-1] & SRCALPHA)
        made = self.copy()
        if self.has_alpha and not alpha:
            made.held[..., 3] = 0
        elif alpha and not self.has_alpha:
            made.held[..., 3] = self.alphas()
        made.has_alpha = alpha
        return made

    def convert_alpha(self, *args: Any) -> Surface:
        """With alpha of its own: nothing of what is as the key."""
        made = self.copy()
        made.held[..., 3] = self.alphas(own=True)
        made.has_alpha, made.key = True, None
        return made

    def alphas(self, own: bool = False) -> Any:
        """How much each pixel covers; of its ``own``, without how much the whole surface does."""
        found = self.held[..., 3].astype(np.int32) if self.has_alpha else np.full(self.get_size(), HIDDEN)
        if self.key is not None:
            found = np.where((self.held[..., :3] == self.key[:3]).all(-1), 0, found)
        return found if own or self.opacity is None else found * self.opacity // HIDDEN

    def set_alpha(self, value: Any = None, flags: int = 0) -> None:
        """How much the whole of it covers."""
        self.opacity = None if value is None else min(HIDDEN, max(0, int(value)))

    def get_alpha(self) -> int:
        """How much the whole of it covers."""
        return HIDDEN if self.opacity is None else self.opacity

    def set_colorkey(self, color: Any = None, flags: int = 0) -> None:
        """The colour that covers nothing."""
        self.key = None if color is None else stored(color)

    def get_colorkey(self) -> Any:
        """The colour that covers nothing."""
        return None if self.key is None else (*self.key[2::-1].tolist(), HIDDEN)

    def set_clip(self, rect: Any = None) -> None:
        """Where alone it may be changed."""
        self.clipped = None if rect is None else self.get_rect().clip(rect)

    def get_clip(self) -> Rect:
        """Where alone it may be changed."""
        return self.get_rect() if self.clipped is None else self.clipped.copy()

    def part(self, rect: Any) -> Any:
        """The bytes within a rectangle that lies on it."""
        left, top, wide, high = rect
        return self.held[left : left + wide, top : top + high]

    def subsurface(self, *given: Any) -> Surface:
        """A part of it, which changes with it."""
        rect = Rect(*given)
        if not self.get_rect().contains(rect) and rect != self.get_rect():
            raise ValueError("subsurface rectangle outside surface area")
        made = self.like(self.part(rect))
        made.parent, made.offset = self, tuple(rect.topleft)
        return made

    def get_parent(self) -> Surface | None:
        """What it is a part of."""
        return self.parent

    def get_offset(self) -> tuple[int, int]:
        """Where it lies in that."""
        return self.offset

    def get_abs_parent(self) -> Surface:
        """What it is a part of at last."""
        return self if self.parent is None else self.parent.get_abs_parent()

    def get_abs_offset(self) -> tuple[int, int]:
        """Where it lies in that."""
        if self.parent is None:
            return 0, 0
        x, y = self.parent.get_abs_offset()
        return self.offset[0] + x, self.offset[1] + y

    def get_at(self, at: Any) -> Color:
        """The colour at a place."""
        x, y = int(at[0]), int(at[1])
        if not self.get_rect().collidepoint(x, y):
            raise IndexError("pixel index out of range")
        blue, green, red, alpha = self.held[x, y].tolist()
        return Color(red, green, blue, alpha if self.has_alpha else HIDDEN)

    def set_at(self, at: Any, color: Any) -> None:
        """Change the colour at a place."""
        x, y = int(at[0]), int(at[1])
        if self.get_clip().collidepoint(x, y):
            self.held[x, y] = self.colour(color)

    def colour(self, color: Any) -> Any:
        """The bytes of a colour on it."""
        found = stored(color)
        if not self.has_alpha:
            found[3] = 0
        return found

    def get_at_mapped(self, at: Any) -> int:
        """The number of the colour at a place."""
        return self.map_rgb(self.get_at(at))

    def map_rgb(self, *color: Any) -> int:
        """The number of a colour."""
        return int(self.colour(color[0] if len(color) == 1 else color).view(np.uint32)[0])

    def unmap_rgb(self, number: int) -> Color:
        """The colour of a number."""
        blue, green, red, alpha = stored(number).tolist()
        return Color(red, green, blue, alpha if self.has_alpha else HIDDEN)

    def fill(self, color: Any, rect: Any = None, special_flags: int = 0) -> Rect:
        """One colour all over, or within a rectangle."""
        where = self.get_clip() if rect is None else Rect(rect).clip(self.get_clip())
        into = self.part(where)
        if special_flags:
            combine(into, np.broadcast_to(stored(color), into.shape), special_flags, self.has_alpha)
        else:
            into[:] = self.colour(color)
        return where

    def blit(self, source: Surface, dest: Any = (0, 0), area: Any = None, special_flags: int = 0) -> Rect:
        """Put another one over it; the place is where its left upper corner comes to lie."""
        taken = source.get_rect()
        at = sides(dest)[:2] if len(dest) != 2 or not isinstance(dest[0], (int, float, np.number)) else dest
        x, y = int(at[0]), int(at[1])
        if area is not None:
            asked = Rect(area)
            taken = asked.clip(taken)
            x, y = x + taken.x - asked.x, y + taken.y - asked.y
        where = Rect(x, y, taken.w, taken.h).clip(self.get_clip())
        if not where:
            return Rect(max(x, 0), max(y, 0), 0, 0)
        taken = Rect(taken.x + where.x - x, taken.y + where.y - y, where.w, where.h)
        seen = source.part(taken)
        into = self.part(where)
        if np.may_share_memory(seen, into):
            seen = seen.copy()
        if special_flags in MIXING:
            if not source.has_alpha:
                seen = seen.copy()
                seen[..., 3] = HIDDEN
            combine(into, seen, special_flags, self.has_alpha)
        elif not source.has_alpha and source.key is None and source.opacity is None:
            into[..., :3] = seen[..., :3]
            into[..., 3] = HIDDEN if self.has_alpha else 0
        else:
            cover(into, seen, source.like(seen).alphas(), self.has_alpha, source)
        return where

    def blits(self, sequence: Any, doreturn: bool = True) -> Any:
        """Put several others over it."""
        found = [self.blit(*one) for one in sequence]
        return found if doreturn else None

    fblits = blits

    def scroll(self, dx: int = 0, dy: int = 0) -> None:
        """Move what is on it; what nothing moves to stays."""
        seen = self.copy()
        seen.has_alpha, seen.key, seen.opacity = False, None, None
        alpha = self.held[..., 3].copy()
        self.blit(seen, (dx, dy))
        where = self.get_rect().move(dx, dy).clip(self.get_rect())
        self.held[..., 3] = alpha
        self.part(where)[..., 3] = alpha[where.x - dx : where.right - dx, where.y - dy : where.bottom - dy]

    def get_bounding_rect(self, min_alpha: int = 1) -> Rect:
        """The smallest rectangle that holds all that covers something."""
        seen = self.alphas(own=True) >= min_alpha
        across, down = np.flatnonzero(seen.any(1)), np.flatnonzero(seen.any(0))
        if not len(across):
            return Rect(0, 0, 0, 0)
        return Rect(across[0], down[0], across[-1] - across[0] + 1, down[-1] - down[0] + 1)

    def premul_alpha(self) -> Surface:
        """The colours by how much they cover."""
        made = self.copy()
        alpha = self.alphas(own=True)[..., None]
        made.held[..., :3] = (made.held[..., :3].astype(np.int32) * alpha + 127) // HIDDEN
        return made

    def get_flags(self) -> int:
        """Whether it has alpha of its own, or a key."""
        return (SRCALPHA if self.has_alpha else 0) | (FLAGS["SRCCOLORKEY"] if self.key is not None else 0)

    def get_bitsize(self) -> int:
        """Bits of a pixel."""
        return 32

    def get_bytesize(self) -> int:
        """Bytes of a pixel."""
        return 4

    def get_pitch(self) -> int:
        """Bytes of a row."""
        return 4 * self.get_width()

    def get_masks(self) -> tuple[int, ...]:
        """Where in a pixel the colours are."""
        return 0xFF0000, 0xFF00, 0xFF, -0x1000000 if self.has_alpha else 0

    def get_shifts(self) -> tuple[int, ...]:
        """Where in a pixel the colours begin."""
        return 16, 8, 0, 24 if self.has_alpha else 0

    def get_losses(self) -> tuple[int, ...]:
        """The bits that colours lack."""
        return 0, 0, 0, 0 if self.has_alpha else 8

    def get_buffer(self) -> bytes:
        """Its bytes, row by row."""
        return bytes(self.held.transpose(1, 0, 2).tobytes())

    def get_view(self, kind: str = "2") -> Any:
        """Its pixels as an array."""
        from . import surfarray

        views = {"2": surfarray.pixels2d, "3": surfarray.pixels3d, "a": surfarray.pixels_alpha}
        return views[kind.lower()](self)

    def lock(self) -> None:
        """Nothing has to be locked."""

    unlock = lock

    def get_locked(self) -> bool:
        """No."""
        return False

    mustlock = get_locked

    def get_locks(self) -> tuple[()]:
        """None."""
        return ()

    def __repr__(self) -> str:
        return f"<Surface({self.get_width()}x{self.get_height()}x32)>"


MIXING = {
    1: "add",
    2: "sub",
    3: "mult",
    4: "min",
    5: "max",
    6: "add",
    7: "sub",
    8: "mult",
    9: "min",
    16: "max",
}
"""What flags make of two colours; from 6 on, of alpha too."""


def combine(into: Any, seen: Any, flag: int, with_alpha: bool) -> None:
    """Put colours over others as a flag says."""
    count = 4 if flag > 5 and with_alpha else 3
    a, b = into[..., :count].astype(np.int32), seen[..., :count].astype(np.int32)
    kind = MIXING.get(flag)
    if kind == "add":
        made = np.minimum(a + b, 255)
    elif kind == "sub":
        made = np.maximum(a - b, 0)
    elif kind == "mult":
        made = (a * b + 255) >> 8
    elif kind == "min":
        made = np.minimum(a, b)
    elif kind == "max":
        made = np.maximum(a, b)
    else:
        made = b
    into[..., :count] = made


def cover(into: Any, seen: Any, alpha: Any, has_alpha: bool, source: Surface) -> None:
    """Put colours of a source over others as far as they cover them."""
    if not source.has_alpha and source.opacity is None:
        covered = alpha > 0
        into[covered, :3] = seen[covered, :3]
        into[covered, 3] = HIDDEN if has_alpha else 0
        return
    part = alpha[..., None]
    below, above = into[..., :3].astype(np.int32), seen[..., :3].astype(np.int32)
    mixed = (((above - below) * part + above) >> 8) + below
    mixed = np.where(part == 0, below, np.where(part == HIDDEN, above, mixed))
    if has_alpha:
        under = into[..., 3].astype(np.int32)
        if source.has_alpha and source.key is None:
            mixed = np.where(under[..., None] == 0, above, mixed)
        # What has neither alpha of its own nor a key leaves nothing open.
        whole = not source.has_alpha and source.key is None
        into[..., 3] = HIDDEN if whole else alpha + under - alpha * under // HIDDEN
    into[..., :3] = mixed.clip(0, 255)


SurfaceType = Surface
