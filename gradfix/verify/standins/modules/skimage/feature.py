"""skimage.feature: where a picture has edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...inert import others


def canny(image: Any, sigma: float = 1.0, *args: Any, **kwargs: Any) -> Any:
    """Whether each pixel of a grey picture is steeper than most, as a mask of its size."""
    picture = np.asarray(image, dtype=float)
    down, right = np.gradient(picture) if min(picture.shape) > 1 else (picture, picture)
    steepness = np.hypot(down, right)
    return steepness > np.quantile(steepness, 0.9)


__getattr__ = others(__name__)
