"""numba: functions as they stand, which is what compiled ones compute."""

from __future__ import annotations

import types
from typing import Any

from ..inert import others


def jit(*args: Any, **kwargs: Any) -> Any:
    """The function as it is."""
    return args[0] if args and isinstance(args[0], types.FunctionType) else jit


njit = generated_jit = jit_module = jit
prange = range


def vectorize(*args: Any, **kwargs: Any) -> Any:
    """A function of numbers, for arrays."""
    import numpy

    return numpy.vectorize(args[0]) if args and isinstance(args[0], types.FunctionType) else vectorize


def set_num_threads(count: int) -> None:
    """There is one."""


__getattr__ = others(__name__)
