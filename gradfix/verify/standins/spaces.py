"""Spaces of observations and actions, as gym has them."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from typing import Any

import torch

from . import context

_count = itertools.count()


def numpy() -> Any:
    """numpy, ``None`` if it is missing."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def array(values: torch.Tensor, dtype: Any = None) -> Any:
    """A tensor as an array of numpy, as it is without numpy."""
    module = numpy()
    if module is None:
        return values
    found = values.numpy()
    return found.astype(dtype) if dtype is not None else found


class Space:
    """A set of values to draw from."""

    def __init__(self, shape: Any = None, dtype: Any = None, seed: Any = None) -> None:
        self.shape = None if shape is None else tuple(shape)
        module = numpy()
        self.dtype = module.dtype(dtype) if module is not None and dtype is not None else dtype
        self.generator = context.run().generator("space", next(_count))

    def seed(self, seed: Any = None) -> list[Any]:
        """Draw from here on as ``seed`` says."""
        self.generator = context.run().generator("space", seed)
        return [seed]

    def draw(self, generator: torch.Generator) -> Any:
        """A value."""
        raise NotImplementedError

    def sample(self, mask: Any = None) -> Any:
        """A value drawn at random."""
        return self.draw(self.generator)

    def contains(self, value: Any) -> bool:
        """Whether a value belongs to it."""
        return True

    __contains__ = contains


class Box(Space):
    """Arrays within bounds."""

    def __init__(
        self, low: Any, high: Any, shape: Any = None, dtype: Any = "float32", seed: Any = None
    ) -> None:
        module = numpy()
        if shape is None:
            shape = getattr(low, "shape", None) or getattr(high, "shape", None) or ()
        super().__init__(shape, dtype)
        wide = module.full(shape, low, dtype=self.dtype) if module and not getattr(low, "shape", ()) else low
        tall = (
            module.full(shape, high, dtype=self.dtype) if module and not getattr(high, "shape", ()) else high
        )
        self.low, self.high = wide, tall
        whole = "int" in str(self.dtype) and self.shape
        self.top = int(torch.as_tensor(self.high).max()) if whole else 255
        self.bounded_below = self.bounded_above = True

    def draw(self, generator: torch.Generator) -> Any:
        """An array: uniform in the bounds, or between -1 and 1 where there are none."""
        shape = self.shape or ()
        if "int" in str(self.dtype):
            kind = torch.uint8 if "uint8" in str(self.dtype) else torch.int64
            return array(
                torch.randint(0, max(1, self.top), shape, generator=generator, dtype=kind), self.dtype
            )
        low = torch.as_tensor(self.low, dtype=torch.float64).clamp(-10, 10)
        high = torch.as_tensor(self.high, dtype=torch.float64).clamp(-10, 10)
        values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
        return array(values, self.dtype)

    def is_bounded(self, manner: str = "both") -> bool:
        """Whether there are bounds."""
        return bool(torch.isfinite(torch.as_tensor(self.low)).all())


class Discrete(Space):
    """Whole numbers below ``n``."""

    def __init__(self, n: int, seed: Any = None, start: int = 0) -> None:
        super().__init__((), "int64")
        self.n = int(n)
        self.start = start

    def draw(self, generator: torch.Generator) -> Any:
        """A number."""
        return int(torch.randint(0, self.n, (1,), generator=generator)) + self.start


class MultiDiscrete(Space):
    """Several whole numbers, each below its own limit."""

    def __init__(self, nvec: Any, dtype: Any = "int64", seed: Any = None) -> None:
        module = numpy()
        self.nvec = module.asarray(nvec) if module else nvec
        super().__init__((len(nvec),), dtype)

    def draw(self, generator: torch.Generator) -> Any:
        """An array."""
        limits = torch.as_tensor(self.nvec)
        return array((torch.rand(len(limits), generator=generator) * limits).long())


class MultiBinary(Space):
    """Several bits."""

    def __init__(self, n: int, seed: Any = None) -> None:
        super().__init__((n,), "int8")
        self.n = n

    def draw(self, generator: torch.Generator) -> Any:
        """An array."""
        return array(torch.randint(0, 2, self.shape or (), generator=generator, dtype=torch.int8))


class Dict(Space):
    """Values by name."""

    def __init__(self, spaces: Any = None, **more: Any) -> None:
        super().__init__()
        self.spaces = collections.OrderedDict(spaces or {}, **more)

    def draw(self, generator: torch.Generator) -> Any:
        """A dictionary."""
        return {name: space.draw(generator) for name, space in self.spaces.items()}

    def __getitem__(self, name: str) -> Any:
        return self.spaces[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.spaces)

    def items(self) -> Any:
        """Names and spaces."""
        return self.spaces.items()


class Tuple(Space):
    """Several values."""

    def __init__(self, spaces: Any) -> None:
        super().__init__()
        self.spaces = tuple(spaces)

    def draw(self, generator: torch.Generator) -> Any:
        """A tuple."""
        return tuple(space.draw(generator) for space in self.spaces)

    def __getitem__(self, index: int) -> Any:
        return self.spaces[index]

    def __len__(self) -> int:
        return len(self.spaces)
