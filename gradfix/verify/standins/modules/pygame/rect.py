"""Rectangles of whole numbers, as pygame has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def half(value: int) -> int:
    """Half of it, towards zero, as C divides."""
    return int(value / 2)


def point(*given: Any) -> tuple[Any, Any]:
    """Two numbers that are given one by one, or as a pair."""
    if len(given) == 1:
        given = tuple(given[0])
    return given[0], given[1]


def shared(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    """Begin and length of what two lengths along a line share, which may be a point within one of them."""
    begin, end = max(one[0], other[0]), min(sum(one), sum(other))
    within = begin < sum(other if begin == one[0] else one) and end > (other if end == sum(one) else one)[0]
    return (begin, end - begin) if within else None


class Rect:
    """A rectangle: the point at its left and top, width and height."""

    def __init__(self, *given: Any) -> None:
        self.update(*given)

    def update(self, *given: Any) -> None:
        """Four numbers, two pairs, another rectangle, or something that has one."""
        if len(given) == 1:
            held = getattr(given[0], "rect", given[0])
            given = tuple(held() if callable(held) else held)
        if len(given) == 2:
            given = (*given[0], *given[1])
        if len(given) != 4:
            raise TypeError("Argument must be rect style object")
        self.x, self.y, self.w, self.h = (int(value) for value in given)

    def __len__(self) -> int:
        return 4

    def __iter__(self) -> Iterator[int]:
        return iter((self.x, self.y, self.w, self.h))

    def __getitem__(self, key: Any) -> Any:
        return (self.x, self.y, self.w, self.h)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        values = list(self)
        values[key] = value
        self.update(*values)

    def __eq__(self, other: object) -> bool:
        try:
            return tuple(self) == tuple(rect(other))
        except TypeError:
            return False

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self.w != 0 and self.h != 0

    def __contains__(self, value: Any) -> bool:
        return value in tuple(self) if isinstance(value, int) else self.contains(value)

    def __repr__(self) -> str:
        return f"<rect({self.x}, {self.y}, {self.w}, {self.h})>"

    def __getattr__(self, name: str) -> Any:
        places = PLACES.get(name)
        if places is None:
            raise AttributeError(f"'pygame.rect.Rect' object has no attribute '{name}'")
        values = [self._at(place) for place in places]
        return values[0] if len(values) == 1 else tuple(values)

    def __setattr__(self, name: str, value: Any) -> None:
        places = PLACES.get(name)
        if places is None:
            object.__setattr__(self, name, int(value) if name in ("x", "y", "w", "h") else value)
            return
        for place, one in zip(places, [value] if len(places) == 1 else value):
            axis, size, part = place
            object.__setattr__(self, axis, int(one)) if part == "size" else self._move(axis, size, part, one)

    def _at(self, place: tuple[str, str, str]) -> int:
        axis, size, part = place
        first, length = getattr(self, axis), getattr(self, size)
        if part == "size":
            return int(first)
        return int(first + {"first": 0, "middle": half(length), "last": length}[part])

    def _move(self, axis: str, size: str, part: str, value: Any) -> None:
        length = getattr(self, size)
        shift = {"first": 0, "middle": half(length), "last": length}[part]
        object.__setattr__(self, axis, int(value) - shift)

    def copy(self) -> Rect:
        """Another one of the same."""
        return type(self)(*self)

    def move(self, *by: Any) -> Rect:
        """Moved."""
        x, y = point(*by)
        return type(self)(self.x + int(x), self.y + int(y), self.w, self.h)

    def inflate(self, *by: Any) -> Rect:
        """Larger around the same centre."""
        x, y = (int(one) for one in point(*by))
        return type(self)(self.x - half(x), self.y - half(y), self.w + x, self.h + y)

    def scale_by(self, x: Any, y: float | None = None) -> Rect:
        """Some times as large around the same centre."""
        x, y = point(x) if isinstance(x, Sequence) else (x, x if y is None else y)
        wide, high = int(self.w * abs(x)), int(self.h * abs(y))
        return type(self)(self.x + half(self.w - wide), self.y + half(self.h - high), wide, high)

    def clamp(self, *other: Any) -> Rect:
        """Moved into another one, or to its centre if it is too large."""
        a, b = self, rect(*other)
        x = b.x + half(b.w) - half(a.w) if a.w >= b.w else min(max(a.x, b.x), b.x + b.w - a.w)
        y = b.y + half(b.h) - half(a.h) if a.h >= b.h else min(max(a.y, b.y), b.y + b.h - a.h)
        return type(self)(x, y, a.w, a.h)

    def clip(self, *other: Any) -> Rect:
        """What both share; nothing, at its own place, if they share nothing."""
        a, b = self, rect(*other)
        found = [shared(one, other) for one, other in (((a.x, a.w), (b.x, b.w)), ((a.y, a.h), (b.y, b.h)))]
        if None in found:
            return type(self)(a.x, a.y, 0, 0)
        (left, wide), (top, high) = found  # type: ignore[misc]
        return type(self)(left, top, wide, high)

    def union(self, *other: Any) -> Rect:
        """The smallest that covers both."""
        return self.unionall([rect(*other)])

    def unionall(self, others: Any) -> Rect:
        """The smallest that covers all."""
        every = [self, *map(rect, others)]
        left, top = min(one.x for one in every), min(one.y for one in every)
        right, bottom = max(one.x + one.w for one in every), max(one.y + one.h for one in every)
        return type(self)(left, top, right - left, bottom - top)

    def fit(self, *other: Any) -> Rect:
        """As large as another one takes, in its middle, with the same sides to each other."""
        b = rect(*other)
        most = max(self.w / b.w, self.h / b.h)
        wide, high = int(self.w / most), int(self.h / most)
        return type(self)(b.x + half(b.w - wide), b.y + half(b.h - high), wide, high)

    def normalize(self) -> None:
        """Turn sizes below zero around."""
        if self.w < 0:
            self.x, self.w = self.x + self.w, -self.w
        if self.h < 0:
            self.y, self.h = self.y + self.h, -self.h

    def move_ip(self, *by: Any) -> None:
        """Move it."""
        self.update(self.move(*by))

    def inflate_ip(self, *by: Any) -> None:
        """Make it larger."""
        self.update(self.inflate(*by))

    def clamp_ip(self, *other: Any) -> None:
        """Move it into another one."""
        self.update(self.clamp(*other))

    def union_ip(self, *other: Any) -> None:
        """Make it cover another one."""
        self.update(self.union(*other))

    def contains(self, *other: Any) -> bool:
        """Whether another one lies within it."""
        a, b = self, rect(*other)
        within = a.x <= b.x and a.y <= b.y and a.x + a.w >= b.x + b.w and a.y + a.h >= b.y + b.h
        return within and a.x + a.w > b.x and a.y + a.h > b.y

    def collidepoint(self, *at: Any) -> bool:
        """Whether a point lies within it, right and bottom sides apart."""
        x, y = point(*at)
        return bool(self.x <= x < self.x + self.w and self.y <= y < self.y + self.h)

    def colliderect(self, *other: Any) -> bool:
        """Whether they share anything."""
        a, b = self, rect(*other)
        if not (a.w and a.h and b.w and b.h):
            return False
        return (
            min(a.x, a.x + a.w) < max(b.x, b.x + b.w)
            and min(a.y, a.y + a.h) < max(b.y, b.y + b.h)
            and max(a.x, a.x + a.w) > min(b.x, b.x + b.w)
            and max(a.y, a.y + a.h) > min(b.y, b.y + b.h)
        )

    def collidelist(self, others: Any) -> int:
        """The number of the first that shares anything with it, or -1."""
        return next((number for number, one in enumerate(others) if self.colliderect(one)), -1)

    def collidelistall(self, others: Any) -> list[int]:
        """The numbers of all that share anything with it."""
        return [number for number, one in enumerate(others) if self.colliderect(one)]

    def collidedict(self, others: Any, values: bool = False) -> Any:
        """The first key and value of which one shares anything with it, or nothing."""
        return next(iter(self.collidedictall(others, values)), None)

    def collidedictall(self, others: Any, values: bool = False) -> list[Any]:
        """Keys and values of which one, the key unless told, shares anything with it."""
        return [pair for pair in others.items() if self.colliderect(pair[values])]


X, Y = ("x", "w"), ("y", "h")
PLACES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "left": ((*X, "first"),),
    "top": ((*Y, "first"),),
    "right": ((*X, "last"),),
    "bottom": ((*Y, "last"),),
    "centerx": ((*X, "middle"),),
    "centery": ((*Y, "middle"),),
    "width": (("w", "w", "size"),),
    "height": (("h", "h", "size"),),
    "size": (("w", "w", "size"), ("h", "h", "size")),
    "topleft": ((*X, "first"), (*Y, "first")),
    "topright": ((*X, "last"), (*Y, "first")),
    "bottomleft": ((*X, "first"), (*Y, "last")),
    "bottomright": ((*X, "last"), (*Y, "last")),
    "center": ((*X, "middle"), (*Y, "middle")),
    "midtop": ((*X, "middle"), (*Y, "first")),
    "midbottom": ((*X, "middle"), (*Y, "last")),
    "midleft": ((*X, "first"), (*Y, "middle")),
    "midright": ((*X, "last"), (*Y, "middle")),
}
"""What a rectangle has by other names: the axis, the size along it, and which part of that."""


def rect(*given: Any) -> Rect:
    """A rectangle, or what may stand for one."""
    return given[0] if len(given) == 1 and isinstance(given[0], Rect) else Rect(*given)
