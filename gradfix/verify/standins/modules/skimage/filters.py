"""skimage.filters: a filter changes nothing but the scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...inert import others
from .util import img_as_float


def gaussian(image: Any, *args: Any, **kwargs: Any) -> Any:
    """As sharp as it is, from 0 to 1."""
    return img_as_float(image)


median = sobel = sobel_h = sobel_v = laplace = prewitt = scharr = gaussian


def threshold_otsu(image: Any, *args: Any, **kwargs: Any) -> float:
    """The mean."""
    return float(np.mean(image))


__getattr__ = others(__name__)
