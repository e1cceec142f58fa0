"""How bright pictures are."""

from __future__ import annotations

from typing import Any

import numpy as np

RANGES = {"uint8": (0, 255), "uint16": (0, 65535), "float": (0, 1), "float32": (0, 1), "float64": (0, 1)}


def bounds(values: Any, given: Any) -> tuple[float, float]:
    """The bounds that are meant: two numbers, those of a kind of numbers, or the values' own."""
    if isinstance(given, (tuple, list)):
        return float(given[0]), float(given[1])
    kind = (
        str(values.dtype) if given == "dtype" else str(np.dtype(given)) if isinstance(given, type) else given
    )
    if kind in RANGES:
        return RANGES[kind]
    return float(values.min()), float(values.max())


def rescale_intensity(image: Any, in_range: Any = "image", out_range: Any = "dtype") -> Any:
    """From some bounds to others; what lies beyond them is at the bound."""
    values = np.asarray(image)
    low, high = bounds(values, in_range)
    least, most = bounds(values, out_range)
    held = np.clip(values.astype(float), low, high)
    spread = (held - low) / ((high - low) or 1) * (most - least) + least
    return spread.astype(values.dtype) if out_range in ("dtype", "image") else spread


def adjust_gamma(image: Any, gamma: float = 1, gain: float = 1) -> Any:
    """Brighter or darker by a power."""
    values = np.asarray(image)
    most = RANGES.get(str(values.dtype), (0, 1))[1]
    return ((values / most) ** gamma * gain * most).astype(values.dtype)


def equalize_hist(image: Any, *args: Any, **kwargs: Any) -> Any:
    """As bright as it is, in numbers up to 1."""
    return rescale_intensity(np.asarray(image).astype(float), out_range=(0, 1))


equalize_adapthist = equalize_hist
