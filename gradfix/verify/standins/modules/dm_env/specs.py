"""Sizes, types and bounds of what environments take and give."""

from __future__ import annotations

from typing import Any

import numpy


class Array:
    """An array of a shape and a type."""

    def __init__(self, shape: Any, dtype: Any, name: str | None = None) -> None:
        self.shape = tuple(int(one) for one in shape)
        self.dtype = numpy.dtype(dtype)
        self.name = name

    def _given(self) -> dict[str, Any]:
        return {"shape": self.shape, "dtype": self.dtype, "name": self.name}

    def validate(self, value: Any) -> Any:
        """The value as an array of this shape; a ``ValueError`` if it has another."""
        found = numpy.asarray(value)
        if found.shape != self.shape or found.dtype != self.dtype:
            raise ValueError(f"{found.shape} of {found.dtype}, not {self.shape} of {self.dtype}")
        return found

    def generate_value(self) -> Any:
        """One that is valid."""
        return numpy.zeros(self.shape, self.dtype)

    def replace(self, **changed: Any) -> Any:
        """The same with something else in it."""
        return type(self)(**{**self._given(), **changed})

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given().items())
        return f"{type(self).__name__}({given})"


class BoundedArray(Array):
    """One whose values have bounds."""

    def __init__(self, shape: Any, dtype: Any, minimum: Any, maximum: Any, name: str | None = None) -> None:
        super().__init__(shape, dtype, name)
        self.minimum = numpy.array(minimum, dtype=self.dtype)
        self.maximum = numpy.array(maximum, dtype=self.dtype)

    def _given(self) -> dict[str, Any]:
        return {**super()._given(), "minimum": self.minimum, "maximum": self.maximum}

    def generate_value(self) -> Any:
        """The lowest one."""
        return numpy.broadcast_to(self.minimum, self.shape).copy()


class DiscreteArray(BoundedArray):
    """A whole number from 0 on, one of so many."""

    def __init__(self, num_values: int, dtype: Any = numpy.int32, name: str | None = None) -> None:
        super().__init__((), dtype, 0, num_values - 1, name)
        self.num_values = num_values

    def _given(self) -> dict[str, Any]:
        return {"num_values": self.num_values, "dtype": self.dtype, "name": self.name}
