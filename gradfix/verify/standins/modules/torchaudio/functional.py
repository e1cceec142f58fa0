"""Functions of sounds."""

from __future__ import annotations

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


__getattr__ = others(__name__)
