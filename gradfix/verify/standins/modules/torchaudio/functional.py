"""Functions of sounds."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...inert import others


def resample(
    waveform: torch.Tensor, orig_freq: int, new_freq: int, *args: Any, **kwargs: Any
) -> torch.Tensor:
    """Another rate, by linear interpolation."""
    if orig_freq == new_freq:
        return waveform
    count = -(-waveform.shape[-1] * new_freq // orig_freq)
    flat = waveform.reshape(1, -1, waveform.shape[-1])
    found = torch.nn.functional.interpolate(flat, int(count), mode="linear", align_corners=False)
    return found.reshape(*waveform.shape[:-1], -1)


def melscale_fbanks(
    n_freqs: int, f_min: float, f_max: float, n_mels: int, sample_rate: int, *args: Any
) -> torch.Tensor:
    """Triangles on the mel scale, frequencies x bands."""
    from ..librosa.filters import mel

    return torch.from_numpy(mel(sample_rate, 2 * (n_freqs - 1), n_mels, f_min, f_max)).T.contiguous()


def amplitude_to_DB(
    x: torch.Tensor, multiplier: float = 10.0, amin: float = 1e-10, *args: Any, **kwargs: Any
) -> torch.Tensor:
    """In decibels."""
    return multiplier * x.clamp(min=amin).log10()


def create_dct(n_mfcc: int, n_mels: int, norm: str | None) -> torch.Tensor:
    """The cosine transform, bands x coefficients."""
    places, orders = torch.arange(float(n_mels)) + 0.5, torch.arange(float(n_mfcc))
    found = torch.cos(math.pi / n_mels * places[:, None] * orders)
    if norm is None:
        return found * 2.0
    found[:, 0] *= math.sqrt(0.5)
    return found * math.sqrt(2.0 / n_mels)


__getattr__ = others(__name__)
