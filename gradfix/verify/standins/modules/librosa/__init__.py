"""librosa: sounds and spectra of the right shapes."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from ...inert import others
from .. import soundfile
from . import feature, filters, util

__version__ = "0.10.0"
__all__ = ["feature", "filters", "util"]


def load(
    path: Any, sr: Any = 22050, mono: bool = True, offset: float = 0.0, duration: Any = None, **kwargs: Any
) -> Any:
    """The samples, as 32-bit numbers, and their rate."""
    values, rate = soundfile.read(path, dtype="float32")
    values = values.mean(-1) if values.ndim == 2 and mono else values
    if sr is not None and sr != rate:
        values, rate = resample(values, orig_sr=rate, target_sr=sr), sr
    start = int(offset * rate)
    return values[start : None if duration is None else start + int(duration * rate)], rate


def resample(y: Any, orig_sr: Any = None, target_sr: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Another rate, by the nearest samples."""
    count = int(numpy.ceil(y.shape[-1] * target_sr / orig_sr))
    return y[..., numpy.linspace(0, y.shape[-1] - 1, count).astype(int)]


def stft(
    y: Any,
    n_fft: int = 2048,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = "hann",
    center: bool = True,
    **kwargs: Any,
) -> Any:
    """The spectrum over time."""
    size = win_length or n_fft
    found = torch.stft(
        torch.as_tensor(numpy.asarray(y, numpy.float32)),
        n_fft,
        hop_length or size // 4,
        size,
        torch.hann_window(size),
        center,
        kwargs.get("pad_mode", "constant"),
        return_complex=True,
    )
    return found.numpy()


def istft(spectrum: Any, hop_length: Any = None, win_length: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The sound of a spectrum."""
    count = 2 * (spectrum.shape[-2] - 1)
    size = win_length or count
    values = torch.as_tensor(numpy.asarray(spectrum, numpy.complex64))
    return torch.istft(values, count, hop_length or size // 4, size, torch.hann_window(size)).numpy()


def magphase(spectrum: Any, power: float = 1) -> Any:
    """Magnitude and phase."""
    return numpy.abs(spectrum) ** power, numpy.exp(1j * numpy.angle(spectrum))


def amplitude_to_db(S: Any, ref: Any = 1.0, amin: float = 1e-5, top_db: Any = 80.0) -> Any:
    """In decibels."""
    level = ref(S) if callable(ref) else ref
    found = 20 * numpy.log10(numpy.maximum(amin, numpy.abs(S)) / max(amin, float(numpy.abs(level))))
    return found if top_db is None else numpy.maximum(found, found.max() - top_db)


def power_to_db(S: Any, ref: Any = 1.0, amin: float = 1e-10, top_db: Any = 80.0) -> Any:
    """In decibels."""
    level = ref(S) if callable(ref) else ref
    found = 10 * numpy.log10(numpy.maximum(amin, numpy.abs(S)) / max(amin, float(numpy.abs(level))))
    return found if top_db is None else numpy.maximum(found, found.max() - top_db)


def db_to_amplitude(S: Any, ref: float = 1.0) -> Any:
    """From decibels."""
    return ref * 10 ** (numpy.asarray(S) / 20)


def get_duration(y: Any = None, sr: int = 22050, **kwargs: Any) -> float:
    """In seconds."""
    return 1.0 if y is None else len(y) / sr


def to_mono(y: Any) -> Any:
    """One channel."""
    return y if y.ndim == 1 else y.mean(0)


class effects:
    """Changes of sounds, left out."""

    @staticmethod
    def trim(y: Any, *args: Any, **kwargs: Any) -> Any:
        """As it is, and from where to where."""
        return y, numpy.array([0, len(y)])

    @staticmethod
    def pitch_shift(y: Any, *args: Any, **kwargs: Any) -> Any:
        """As it is."""
        return y

    time_stretch = preemphasis = pitch_shift


__getattr__ = others(__name__)
