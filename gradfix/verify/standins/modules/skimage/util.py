"""skimage.util: the scales of pictures, and their parts."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...inert import others


def img_as_float(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Numbers from 0 to 1."""
    values = np.asarray(values)
    return values if values.dtype.kind == "f" else values / float(np.iinfo(values.dtype).max)


img_as_float64 = img_as_float


def img_as_float32(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Numbers from 0 to 1, in four bytes each."""
    return img_as_float(values).astype(np.float32)


def img_as_ubyte(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Bytes."""
    values = np.asarray(values)
    return (
        (values * 255).clip(0, 255).astype(np.uint8) if values.dtype.kind == "f" else values.astype(np.uint8)
    )


def random_noise(values: Any, *args: Any, **kwargs: Any) -> Any:
    """As it is, from 0 to 1."""
    return img_as_float(values)


def crop(values: Any, crop_width: Any, *args: Any, **kwargs: Any) -> Any:
    """Without so many rows and columns at the ends."""
    return values[tuple(slice(one[0], -one[1] or None) for one in crop_width)]


def view_as_windows(values: Any, window_shape: Any, step: Any = 1) -> Any:
    """All parts of a shape, in the order of their places, ``step`` apart."""
    count = np.ndim(values)
    shape = (window_shape,) * count if isinstance(window_shape, int) else tuple(window_shape)
    steps = (step,) * count if isinstance(step, int) else step
    found = np.lib.stride_tricks.sliding_window_view(values, shape, writeable=True)
    return found[tuple(slice(None, None, one) for one in steps)]


def view_as_blocks(values: Any, block_shape: Any) -> Any:
    """Parts of a shape that lie side by side."""
    return view_as_windows(values, tuple(block_shape), tuple(block_shape))


shape = sys.modules[__name__]
__getattr__ = others(__name__)
