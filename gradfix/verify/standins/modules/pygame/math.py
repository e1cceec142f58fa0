"""Vectors in a plane."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...inert import others


class Vector2:
    """Two numbers."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, x: Any = 0, y: Any = None) -> None:
        self.update(x, y)

    def update(self, x: Any = 0, y: Any = None) -> None:
        """Give it other numbers."""
        if y is None:
            x, y = x if hasattr(x, "__iter__") else (x, x)
        self.x, self.y = float(x), float(y)

    def __iter__(self) -> Iterator[float]:
        return iter((self.x, self.y))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, key: Any) -> Any:
        return (self.x, self.y)[key]

    def __setitem__(self, key: int, value: float) -> None:
        values = [self.x, self.y]
        values[key] = value
        self.x, self.y = values

    def __repr__(self) -> str:
        return f"<Vector2({self.x:g}, {self.y:g})>"

    def __eq__(self, other: object) -> bool:
        return hasattr(other, "__len__") and tuple(self) == tuple(other)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self.x or self.y)

    def __add__(self, other: Any) -> Vector2:
        return Vector2(self.x + other[0], self.y + other[1])

    __radd__ = __add__

    def __sub__(self, other: Any) -> Vector2:
        return Vector2(self.x - other[0], self.y - other[1])

    def __rsub__(self, other: Any) -> Vector2:
        return Vector2(other[0] - self.x, other[1] - self.y)

    def __mul__(self, other: Any) -> Any:
        return self.dot(other) if hasattr(other, "__len__") else Vector2(self.x * other, self.y * other)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Vector2:
        return Vector2(self.x / other, self.y / other)

    def __floordiv__(self, other: float) -> Vector2:
        return Vector2(self.x // other, self.y // other)

    def __neg__(self) -> Vector2:
        return Vector2(-self.x, -self.y)

    def copy(self) -> Vector2:
        """Another one of the same."""
        return Vector2(self.x, self.y)

    def dot(self, other: Any) -> float:
        """The sum of the products."""
        return float(self.x * other[0] + self.y * other[1])

    def cross(self, other: Any) -> float:
        """What a plane leaves of that product."""
        return float(self.x * other[1] - self.y * other[0])

    def length(self) -> float:
        """How long it is."""
        return float(math.hypot(self.x, self.y))

    magnitude = length

    def length_squared(self) -> float:
        """The square of that."""
        return self.dot(self)

    magnitude_squared = length_squared

    def normalize(self) -> Vector2:
        """Of length 1."""
        if not self:
            raise ValueError("Can't normalize Vector of length zero")
        return self / self.length()

    def normalize_ip(self) -> None:
        """Make it of length 1."""
        self.update(self.normalize())

    def scale_to_length(self, length: float) -> None:
        """Make it of some length."""
        self.update(self.normalize() * length)

    def distance_to(self, other: Any) -> float:
        """How far it is to another one."""
        return Vector2(self - other).length()

    def distance_squared_to(self, other: Any) -> float:
        """The square of that."""
        return Vector2(self - other).length_squared()

    def angle_to(self, other: Any) -> float:
        """By how many degrees another one is turned."""
        return math.degrees(math.atan2(other[1], other[0]) - math.atan2(self.y, self.x))

    def rotate(self, angle: float) -> Vector2:
        """Turned by degrees."""
        a, b = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        return Vector2(a * self.x - b * self.y, b * self.x + a * self.y)

    def rotate_ip(self, angle: float) -> None:
        """Turn it by degrees."""
        self.update(self.rotate(angle))

    def lerp(self, other: Any, t: float) -> Vector2:
        """Between it and another one."""
        return Vector2(self.x + (other[0] - self.x) * t, self.y + (other[1] - self.y) * t)


__getattr__ = others(__name__)
