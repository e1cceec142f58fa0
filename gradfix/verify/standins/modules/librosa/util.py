"""Lengths and scales."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


def normalize(values: Any, *args: Any, **kwargs: Any) -> Any:
    """With the largest magnitude 1."""
    top = numpy.abs(values).max()
    return values / (top or 1)


def fix_length(values: Any, size: int, **kwargs: Any) -> Any:
    """Cut or padded."""
    values = values[..., :size]
    return numpy.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, size - values.shape[-1])])


def pad_center(values: Any, size: int, **kwargs: Any) -> Any:
    """Padded at both ends."""
    before = (size - len(values)) // 2
    return numpy.pad(values, (before, size - len(values) - before))


def tiny(values: Any) -> Any:
    """The smallest number."""
    return numpy.finfo(numpy.float32).tiny


__getattr__ = others(__name__)
