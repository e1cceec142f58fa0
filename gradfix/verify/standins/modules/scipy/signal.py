"""Signals: sizes are right."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, **kwargs: Any) -> Any:
    """A linear filter along the last axis, or along the first."""
    x = numpy.moveaxis(numpy.asarray(x, float), axis, -1)
    b, a = numpy.atleast_1d(b) / numpy.atleast_1d(a)[0], numpy.atleast_1d(a) / numpy.atleast_1d(a)[0]
    y = numpy.zeros_like(x)
    for n in range(x.shape[-1]):
        for k in range(min(len(b), n + 1)):
            y[..., n] += b[k] * x[..., n - k]
        for k in range(1, min(len(a), n + 1)):
            y[..., n] -= a[k] * y[..., n - k]
    return numpy.moveaxis(y, -1, axis)


def resample(x: Any, num: int, *args: Any, **kwargs: Any) -> Any:
    """Another number of samples, by the nearest."""
    x = numpy.asarray(x)
    return x[numpy.linspace(0, len(x) - 1, num).astype(int)]


def medfilt(x: Any, *args: Any, **kwargs: Any) -> Any:
    """As it is."""
    return numpy.array(x)


filtfilt = lambda b, a, x, *args, **kwargs: numpy.array(x, float)  # noqa: E731


def get_window(name: Any, length: int, fftbins: bool = True) -> Any:
    """A window of that length."""
    return numpy.hanning(length + fftbins)[:length]


def hann(length: int, *args: Any) -> Any:
    """A window of that length."""
    return get_window("hann", length)


__getattr__ = others(__name__)
