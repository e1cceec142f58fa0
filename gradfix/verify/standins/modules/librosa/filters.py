"""Bands of frequencies."""

from __future__ import annotations

from typing import Any

import numpy


def mel(
    sr: float = 22050,
    n_fft: int = 2048,
    n_mels: int = 128,
    fmin: float = 0.0,
    fmax: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Triangles on the mel scale, bands x frequencies."""

    def scale(hertz: Any) -> Any:
        return 2595 * numpy.log10(1 + numpy.asarray(hertz) / 700)

    edges = 700 * (10 ** (numpy.linspace(scale(fmin), scale(fmax or sr / 2), n_mels + 2) / 2595) - 1)
    frequencies = numpy.linspace(0, sr / 2, 1 + n_fft // 2)
    rising = (frequencies - edges[:-2, None]) / numpy.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequencies) / numpy.diff(edges)[1:, None]
    found = numpy.maximum(0, numpy.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return found.astype(numpy.float32)
