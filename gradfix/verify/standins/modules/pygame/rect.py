"""Rectangles: a corner and two sides, whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ctypes import c_float
from typing import Any, ClassVar

PLACES = {"left": 0, "centerx": 1, "right": 2, "top": 0, "centery": 1, "bottom": 2}
"""Halves of a side from the corner."""
POINTS = {
    "topleft": ("left", "top"), "midtop": ("centerx", "top"), "topright": ("right", "top"),
    "midleft": ("left", "centery"), "center": ("centerx", "centery"), "midright": ("right", "centery"),
    "bottomleft": ("left", "bottom"), "midbottom": ("centerx", "bottom"), "bottomright": ("right", "bottom"),
    "size": ("width", "height"),
}  # fmt: skip


def sides(given: Any) -> list[Any]:
    """Left, top, width and height of what looks like a rectangle."""
    while True:
        if isinstance(given, Rect):
            return list(given)
        inner = getattr(given, "rect", None)
        if inner is not None:
            given = inner() if callable(inner) else inner
            continue
        try:
            found = list(given)
        except TypeError:
            raise TypeError("Argument must be rect style object") from None
        if len(found) == 1:
            given = found[0]
        elif len(found) == 2:
            return [*found[0], *found[1]]
        elif len(found) == 4:
            return found
        else:
            raise TypeError("Argument must be rect style object")


def pair(given: Any) -> Any:
    """Two numbers that were given as two, or as one point."""
    return given[0] if len(given) == 1 else given


class Rect:
    """A rectangle. Its sides may be negative: it then lies on the other side of its corner."""

    number: ClassVar[Callable[[Any], Any]] = int
    __slots__ = ("__dict__", "_at")
    __hash__ = None  # type: ignore[assignment]

    x: Any
    y: Any
    w: Any
    h: Any
    left: Any
    top: Any
    right: Any
    bottom: Any
    centerx: Any
    centery: Any
    center: Any
    topleft: Any
    size: Any

    def __init__(self, *given: Any) -> None:
        self._at = [type(self).number(one) for one in sides(given)]

    def _rounded(self, value: Any) -> Any:
        """What is set by a name: all else cuts off what follows the point."""
        number = type(self).number
        return number(value) if number is float else number(value + (0.5 if value >= 0 else -0.5))

    def _half(self, length: Any) -> Any:
        return length / 2 if type(self).number is float else length // 2

    def _cut(self, length: Any) -> Any:
        """Half of it towards nothing, as C divides."""
        return type(self).number(length / 2)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._at)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: Any) -> Any:
        return self._at[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._at[index] = [type(self).number(one) for one in value]
        else:
            self._at[index] = type(self).number(value)

    def __eq__(self, other: object) -> bool:
        try:
            return self._at == [type(self).number(one) for one in sides(other)]
        except (TypeError, ValueError):
            return False

    def __lt__(self, other: Any) -> bool:
        return bool(tuple(self) < tuple(sides(other)))

    def __bool__(self) -> bool:
        return bool(self.w != 0 and self.h != 0)

    def __contains__(self, value: Any) -> bool:
        return value in self._at

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()}({', '.join(map(str, self._at))})>"

    def __reduce__(self) -> Any:
        return type(self), tuple(self._at)

    def copy(self) -> Rect:
        """The same again."""
        return type(self)(*self._at)

    __copy__ = copy

    def update(self, *given: Any) -> None:
        """Take another place and other sides."""
        self._at[:] = type(self)(*given)._at

    def move(self, *by: Any) -> Rect:
        """The same at another place."""
        x, y = pair(by)
        return type(self)(self.x + type(self).number(x), self.y + type(self).number(y), self.w, self.h)

    def inflate(self, *by: Any) -> Rect:
        """With other sides around the same centre."""
        x, y = (type(self).number(one) for one in pair(by))
        return type(self)(self.x - self._cut(x), self.y - self._cut(y), self.w + x, self.h + y)

    def scale_by(self, *by: Any) -> Rect:
        """With multiples of its sides around the same centre."""
        by = pair(by) if isinstance(pair(by), (tuple, list)) else by
        across, down = (by[0], by[-1]) if isinstance(by, (tuple, list)) else (by, by)
        wide, high = self.w * across, self.h * down
        left, top = self.x + self._cut(self.w) - wide / 2, self.y + self._cut(self.h) - high / 2
        return type(self)(left, top, wide, high)

    def clamp(self, *into: Any) -> Rect:
        """Moved into another one; to its middle if it is too large."""
        found = self.copy()
        within = type(self)(*into)
        for axis in (0, 1):
            low, room = within[axis], within[axis + 2]
            length = self[axis + 2]
            if length >= room:
                found[axis] = low + self._cut(room) - self._cut(length)
            else:
                found[axis] = min(max(self[axis], low), low + room - length)
        return found

    def _edges(self) -> tuple[Any, Any, Any, Any]:
        return (
            min(self.x, self.x + self.w),
            min(self.y, self.y + self.h),
            max(self.x, self.x + self.w),
            max(self.y, self.y + self.h),
        )

    def clip(self, *by: Any) -> Rect:
        """What both have; without sides at the same corner if they have nothing."""
        b = type(self)(*by)
        found = []
        for low, length, start, long in ((self.x, self.w, b.x, b.w), (self.y, self.h, b.y, b.h)):
            high, end = low + length, start + long
            # One without length belongs to what it lies in, but not at its first edge.
            if not (start <= low < end or low <= start < high):
                return type(self)(self.x, self.y, 0, 0)
            if not (start < high <= end or low < end <= high):
                return type(self)(self.x, self.y, 0, 0)
            found.append((max(low, start), min(high, end)))
        (left, right), (top, bottom) = found
        return type(self)(left, top, right - left, bottom - top)

    def clipline(self, *line: Any) -> Any:
        """The ends of the part of a line that lies within; none if there is none."""
        flat = [one for part in line for one in (part if isinstance(part, (tuple, list)) else (part,))]
        if len(flat) == 2:
            flat = [*flat[0], *flat[1]]
        x, y, u, v = (int(one) for one in flat)
        left, top, right, bottom = self._edges()
        begin, end = 0.0, 1.0
        for step, room in (
            (x - u, x - left),
            (u - x, right - 1 - x),
            (y - v, y - top),
            (v - y, bottom - 1 - y),
        ):
            if step == 0 and room < 0:
                return ()
            if step < 0:
                begin = max(begin, room / step)
            elif step > 0:
                end = min(end, room / step)
        if begin > end or not self:
            return ()
        return tuple((int(x + at * (u - x)), int(y + at * (v - y))) for at in (begin, end))

    def union(self, *other: Any) -> Rect:
        """The smallest that holds both."""
        return self.unionall([type(self)(*other)])

    def unionall(self, others: Any) -> Rect:
        """The smallest that holds all."""
        every = [self, *(type(self)(one) for one in others)]
        left, top = min(one.x for one in every), min(one.y for one in every)
        right, bottom = max(one.x + one.w for one in every), max(one.y + one.h for one in every)
        return type(self)(left, top, right - left, bottom - top)

    def fit(self, *into: Any) -> Rect:
        """As large as there is room for in another one, the sides in proportion."""
        within = type(self)(*into)
        # In numbers of four bytes: what is cut off depends on how they are rounded.
        ratio = c_float(max(self.w / within.w, self.h / within.h)).value
        wide, high = (type(self).number(c_float(one / ratio).value) for one in (self.w, self.h))
        return type(self)(
            within.x + self._cut(within.w - wide), within.y + self._cut(within.h - high), wide, high
        )

    def normalize(self) -> None:
        """Give it positive sides, where it lies."""
        left, top, right, bottom = self._edges()
        self._at[:] = [left, top, right - left, bottom - top]

    def contains(self, *other: Any) -> bool:
        """Whether all of another one lies within."""
        b = type(self)(*other)
        right, bottom = self.x + self.w, self.y + self.h
        return bool(
            self.x <= b.x < right and self.y <= b.y < bottom and right >= b.x + b.w and bottom >= b.y + b.h
        )

    def collidepoint(self, *point: Any) -> bool:
        """Whether a point lies within; the right and the bottom edge do not."""
        x, y = (type(self).number(one) for one in pair(point))
        return bool(self.x <= x < self.x + self.w and self.y <= y < self.y + self.h)

    def colliderect(self, *other: Any) -> bool:
        """Whether both have something."""
        b = type(self)(*other)
        if not self or not b:
            return False
        mine, its = self._edges(), b._edges()
        return bool(mine[0] < its[2] and mine[1] < its[3] and mine[2] > its[0] and mine[3] > its[1])

    def collidelist(self, others: Any) -> int:
        """The place of the first one that it has something in common with, else -1."""
        return next((place for place, one in enumerate(others) if self.colliderect(one)), -1)

    def collidelistall(self, others: Any) -> list[int]:
        """The places of all that it has something in common with."""
        return [place for place, one in enumerate(others) if self.colliderect(one)]

    def collideobjectsall(self, objects: Any, key: Any = None) -> list[Any]:
        """The objects whose rectangles it has something in common with."""
        return [one for one in objects if self.colliderect(key(one) if key else one)]

    def collideobjects(self, objects: Any, key: Any = None) -> Any:
        """The first one of these."""
        return next(iter(self.collideobjectsall(objects, key)), None)

    def collidedictall(self, others: Any, values: bool = False) -> list[Any]:
        """The items of a dictionary whose keys, or values, it has something in common with."""
        return [item for item in others.items() if self.colliderect(item[1 if values else 0])]

    def collidedict(self, others: Any, values: bool = False) -> Any:
        """The first one of these."""
        return next(iter(self.collidedictall(others, values)), None)


def place(index: int) -> property:
    """One of the four numbers."""

    def put(self: Rect, value: Any) -> None:
        self._at[index] = self._rounded(value)

    return property(lambda self: self._at[index], put)


def edge(axis: int, halves: int) -> property:
    """A line through it that moves it."""

    def part(self: Rect) -> Any:
        return (0, self._half(self._at[axis + 2]), self._at[axis + 2])[halves]

    def put(self: Rect, value: Any) -> None:
        self._at[axis] = self._rounded(value) - part(self)

    return property(lambda self: self._at[axis] + part(self), put)


def point(across: str, down: str) -> property:
    """A point of it that moves it."""

    def put(self: Rect, value: Any) -> None:
        first, second = value
        setattr(self, across, first)
        setattr(self, down, second)

    return property(lambda self: (getattr(self, across), getattr(self, down)), put)


def in_place(name: str) -> Callable[..., None]:
    """The method that changes the rectangle itself."""

    def change(self: Rect, *given: Any) -> None:
        self._at[:] = getattr(self, name)(*given)._at

    return change


for _index, _names in enumerate((("x",), ("y",), ("w", "width"), ("h", "height"))):
    for _name in _names:
        setattr(Rect, _name, place(_index))
for _name, _halves in PLACES.items():
    setattr(Rect, _name, edge(int(_name in ("top", "centery", "bottom")), _halves))
for _name, _parts in POINTS.items():
    setattr(Rect, _name, point(*_parts))
for _name in ("move", "inflate", "scale_by", "clamp", "union", "unionall"):
    setattr(Rect, _name + "_ip", in_place(_name))


class FRect(Rect):
    """A rectangle of any numbers."""

    number = float


RectType = Rect
