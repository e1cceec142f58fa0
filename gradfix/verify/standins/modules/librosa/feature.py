"""What is computed of spectra."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


def melspectrogram(
    y: Any = None,
    sr: int = 22050,
    S: Any = None,
    n_fft: int = 2048,
    hop_length: int = 512,
    power: float = 2.0,
    **kwargs: Any,
) -> Any:
    """The spectrum in bands of the mel scale, over time."""
    from . import filters, stft

    if S is None:
        S = numpy.abs(stft(y, n_fft, hop_length, kwargs.pop("win_length", None))) ** power
    known = {name: kwargs[name] for name in ("n_mels", "fmin", "fmax") if name in kwargs}
    return filters.mel(sr, 2 * (S.shape[-2] - 1), **known) @ S


def mfcc(y: Any = None, sr: int = 22050, S: Any = None, n_mfcc: int = 20, **kwargs: Any) -> Any:
    """The first of the cosine transform of the logarithm."""
    from . import power_to_db

    bands = power_to_db(melspectrogram(y, sr, **kwargs)) if S is None else S
    count = bands.shape[-2]
    rows = numpy.cos(numpy.pi / count * (numpy.arange(count) + 0.5) * numpy.arange(n_mfcc)[:, None])
    return rows @ bands * numpy.sqrt(2 / count)


def delta(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Differences over time."""
    return numpy.gradient(values, axis=-1)


__getattr__ = others(__name__)
