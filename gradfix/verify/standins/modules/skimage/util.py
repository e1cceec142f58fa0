"""skimage.util: the scales of pictures."""

from __future__ import annotations

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


__getattr__ = others(__name__)
