"""Vectors of two and of three numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar


class Vector:
    """Some numbers that are computed with together."""

    length_of: ClassVar[int]
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *given: Any) -> None:
        self.values = self._taken(given)

    @classmethod
    def _taken(cls, given: Any) -> list[float]:
        found = list(given[0]) if len(given) == 1 and not isinstance(given[0], (int, float)) else list(given)
        if len(found) <= 1:
            found = (found or [0]) * cls.length_of
        if len(found) != cls.length_of:
            raise ValueError(f"{cls.__name__} must be set with {cls.length_of} real numbers")
        return [float(one) for one in found]

    def _of(self, values: Any) -> Any:
        return type(self)(*values)

    def update(self, *given: Any) -> None:
        """Take other numbers."""
        self.values = self._taken(given)

    def copy(self) -> Any:
        """The same again."""
        return self._of(self.values)

    __copy__ = copy

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    def __len__(self) -> int:
        return self.length_of

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.values[index] = float(value) if isinstance(index, int) else [float(one) for one in value]

    def __getattr__(self, name: str) -> Any:
        # Any of its letters: ``v.yx``.
        if name and not set(name) - set("xyz"[: self.length_of]):
            found = ["xyz".index(one) for one in name]
            values = [self.values[one] for one in found]
            return values[0] if len(found) == 1 else Vector2(*values) if len(found) == 2 else tuple(values)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if len(name) == 1 and name in "xyz"[: self.length_of]:
            self.values["xyz".index(name)] = float(value)
        else:
            object.__setattr__(self, name, value)

    def __add__(self, other: Any) -> Any:
        return self._of(a + b for a, b in zip(self, other))

    def __sub__(self, other: Any) -> Any:
        return self._of(a - b for a, b in zip(self, other))

    def __rsub__(self, other: Any) -> Any:
        return self._of(b - a for a, b in zip(self, other))

    def __mul__(self, other: Any) -> Any:
        if hasattr(other, "__len__"):
            return self.dot(other)
        return self._of(a * other for a in self)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: float) -> Any:
        return self._of(a / other for a in self)

    def __floordiv__(self, other: float) -> Any:
        return self._of(a // other for a in self)

    def __mod__(self, other: Any) -> Any:
        return self._of(a % other for a in self)

    def __neg__(self) -> Any:
        return self._of(-a for a in self)

    def __pos__(self) -> Any:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        try:
            others = list(other)  # type: ignore[call-overload]
        except TypeError:
            return False
        return len(others) == len(self) and all(abs(a - b) < 1e-6 for a, b in zip(self, others))

    def __bool__(self) -> bool:
        return any(self.values)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({', '.join(f'{one:g}' for one in self)})>"

    def dot(self, other: Any) -> float:
        """The sum of the products."""
        return float(sum(a * b for a, b in zip(self, other)))

    def length(self) -> float:
        """How long it is."""
        return math.sqrt(self.dot(self))

    magnitude = length

    def length_squared(self) -> float:
        """The square of how long it is."""
        return self.dot(self)

    magnitude_squared = length_squared

    def normalize(self) -> Any:
        """As long as one."""
        long = self.length()
        if not long:
            raise ValueError("Can't normalize Vector of length zero")
        return self / long

    def is_normalized(self) -> bool:
        """Whether it is as long as one."""
        return abs(self.length_squared() - 1) < 1e-6

    def normalize_ip(self) -> None:
        """Become as long as one."""
        self.update(self.normalize())

    def scale_to_length(self, length: float) -> None:
        """Become so long."""
        if not self.length():
            raise ValueError("Cannot scale a vector with zero length")
        self.update(self * (length / self.length()))

    def clamp_magnitude(self, *bounds: float) -> Any:
        """No longer, and no shorter, than is said."""
        low, high = (0.0, bounds[0]) if len(bounds) == 1 else bounds
        return self.normalize() * min(max(self.length(), low), high)

    def distance_to(self, other: Any) -> float:
        """How far it is to another one."""
        return float((self - other).length())

    def distance_squared_to(self, other: Any) -> float:
        """The square of how far it is."""
        return float((self - other).length_squared())

    def lerp(self, other: Any, t: float) -> Any:
        """Between two vectors."""
        if not 0 <= t <= 1:
            raise ValueError("Argument 2 must be in range [0, 1]")
        return self + (self._of(other) - self) * t

    def move_towards(self, target: Any, max_distance: float) -> Any:
        """Nearer to another one, by so much at most."""
        way = self._of(target) - self
        return self._of(target) if way.length() <= max_distance else self + way.normalize() * max_distance

    def reflect(self, normal: Any) -> Any:
        """Thrown back by a wall."""
        wall = self._of(normal).normalize()
        return self - wall * (2 * self.dot(wall))

    def project(self, onto: Any) -> Any:
        """The part in the direction of another one."""
        other = self._of(onto)
        return other * (self.dot(other) / other.length_squared())

    def elementwise(self) -> Elementwise:
        """What computes with each number by itself."""
        return Elementwise(self)


class Elementwise:
    """A vector each of whose numbers is computed with by itself."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector

    def _each(self, other: Any, operate: Any) -> Any:
        others = other.vector if isinstance(other, Elementwise) else other
        others = others if hasattr(others, "__iter__") else [others] * len(self.vector)
        return self.vector._of(operate(a, b) for a, b in zip(self.vector, others))

    def __mul__(self, other: Any) -> Any:
        return self._each(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Any:
        return self._each(other, lambda a, b: a / b)

    def __add__(self, other: Any) -> Any:
        return self._each(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._each(other, lambda a, b: a - b)

    def __pow__(self, other: Any) -> Any:
        return self._each(other, lambda a, b: a**b)


class Vector2(Vector):
    """Two numbers."""

    length_of = 2

    def rotate_rad(self, angle: float) -> Vector2:
        """Turned by an angle, from x to y."""
        cos, sin = math.cos(angle), math.sin(angle)
        return Vector2(self.x * cos - self.y * sin, self.x * sin + self.y * cos)

    def rotate(self, angle: float) -> Vector2:
        """Turned by degrees."""
        return self.rotate_rad(math.radians(angle))

    def rotate_ip(self, angle: float) -> None:
        """Turn by degrees."""
        self.update(self.rotate(angle))

    def rotate_ip_rad(self, angle: float) -> None:
        """Turn by an angle."""
        self.update(self.rotate_rad(angle))

    rotate_rad_ip = rotate_ip_rad

    def angle_to(self, other: Any) -> float:
        """Degrees from it to another one."""
        x, y = other
        return math.degrees(math.atan2(y, x) - math.atan2(self.y, self.x))

    def cross(self, other: Any) -> float:
        """The area between two."""
        x, y = other
        return float(self.x * y - self.y * x)

    def as_polar(self) -> tuple[float, float]:
        """Length and degrees."""
        return self.length(), math.degrees(math.atan2(self.y, self.x))

    def from_polar(self, polar: Any) -> None:
        """Take a length and degrees."""
        self.update(polar[0] * math.cos(math.radians(polar[1])), polar[0] * math.sin(math.radians(polar[1])))


class Vector3(Vector):
    """Three numbers."""

    length_of = 3

    def cross(self, other: Any) -> Vector3:
        """What is upright on both."""
        a, b = self.values, list(other)
        return Vector3(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])

    def angle_to(self, other: Any) -> float:
        """Degrees between two."""
        cosine = self.dot(other) / (self.length() * Vector3(other).length())
        return math.degrees(math.acos(min(1.0, max(-1.0, cosine))))


def clamp(value: float, min: float, max: float) -> float:
    """A number between two others."""
    return max if value > max else min if value < min else value


def lerp(a: float, b: float, weight: float, do_clamp: bool = True) -> float:
    """Between two numbers."""
    return a + (b - a) * (clamp(weight, 0.0, 1.0) if do_clamp else weight)
