"""skimage.metrics: how alike pictures are, as numbers that are only shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...inert import others


def mean_squared_error(first: Any, second: Any) -> float:
    """The mean of the squared differences."""
    return float(np.mean((np.asarray(first, float) - np.asarray(second, float)) ** 2))


def peak_signal_noise_ratio(first: Any, second: Any, data_range: Any = None, **kwargs: Any) -> float:
    """In decibels."""
    largest = float(data_range or (255 if np.asarray(first).dtype == np.uint8 else 1))
    return float(10 * np.log10(largest**2 / max(mean_squared_error(first, second), 1e-12)))


def structural_similarity(first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
    """Of the pictures as a whole, without windows; with ``full`` also that at each place."""
    one, other = np.asarray(first, float), np.asarray(second, float)
    mean = one.mean() * other.mean() * 2 + 1e-4
    spread = ((one - one.mean()) * (other - other.mean())).mean() * 2 + 9e-4
    found = float(
        mean * spread / ((one.mean() ** 2 + other.mean() ** 2 + 1e-4) * (one.var() + other.var() + 9e-4))
    )
    return (found, np.full(one.shape, found)) if kwargs.get("full") else found


__getattr__ = others(__name__)
