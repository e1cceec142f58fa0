"""Functions of sounds as modules."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...inert import others
from . import functional


class Resample(torch.nn.Module):
    """Another rate."""

    def __init__(self, orig_freq: int = 16000, new_freq: int = 16000, **kwargs: Any) -> None:
        super().__init__()
        self.rates = orig_freq, new_freq

    def forward(self, waveform: torch.Tensor) -> torch.Tensor:
        return functional.resample(waveform, *self.rates)


class Spectrogram(torch.nn.Module):
    """The spectrum over time."""

    def __init__(
        self,
        n_fft: int = 400,
        win_length: Any = None,
        hop_length: Any = None,
        pad: int = 0,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.n_fft, self.win_length = n_fft, win_length or n_fft
        self.hop_length = hop_length or self.win_length // 2
        self.power = kwargs.get("power", 2.0)
        self.center = kwargs.get("center", True)
        self.window: Any
        self.register_buffer("window", torch.hann_window(self.win_length))

    def forward(self, waveform: torch.Tensor) -> torch.Tensor:
        flat = waveform.reshape(-1, waveform.shape[-1])
        found = torch.stft(
            flat, self.n_fft, self.hop_length, self.win_length, self.window, self.center, return_complex=True
        )
        found = found.reshape(*waveform.shape[:-1], *found.shape[-2:])
        return found if self.power is None else found.abs().pow(self.power)


class MelScale(torch.nn.Module):
    """Bands of the mel scale."""

    def __init__(
        self,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: Any = None,
        n_stft: int = 201,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        top = f_max or sample_rate / 2
        self.fb: Any
        self.register_buffer("fb", functional.melscale_fbanks(n_stft, f_min, top, n_mels, sample_rate))

    def forward(self, spectrum: torch.Tensor) -> torch.Tensor:
        return (spectrum.transpose(-1, -2) @ self.fb).transpose(-1, -2)  # type: ignore[no-any-return]


class MelSpectrogram(torch.nn.Module):
    """The spectrum in bands of the mel scale, over time."""

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: Any = None,
        hop_length: Any = None,
        f_min: float = 0.0,
        f_max: Any = None,
        pad: int = 0,
        n_mels: int = 128,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.sample_rate, self.n_mels = sample_rate, n_mels
        self.spectrogram = Spectrogram(n_fft, win_length, hop_length, **kwargs)
        self.mel_scale = MelScale(n_mels, sample_rate, f_min, f_max, n_fft // 2 + 1)

    def forward(self, waveform: torch.Tensor) -> Any:
        return self.mel_scale(self.spectrogram(waveform))


class MFCC(torch.nn.Module):
    """The first of the cosine transform of the logarithm."""

    def __init__(
        self,
        sample_rate: int = 16000,
        n_mfcc: int = 40,
        dct_type: int = 2,
        norm: Any = "ortho",
        log_mels: bool = False,
        melkwargs: Any = None,
    ) -> None:
        super().__init__()
        self.MelSpectrogram = MelSpectrogram(sample_rate, **(melkwargs or {}))
        count = self.MelSpectrogram.n_mels
        steps = torch.arange(count, dtype=torch.float32) + 0.5
        rows = torch.cos(math.pi / count * steps * torch.arange(n_mfcc, dtype=torch.float32)[:, None])
        self.register_buffer("rows", rows * math.sqrt(2 / count))

    def forward(self, waveform: torch.Tensor) -> Any:
        return self.rows @ self.MelSpectrogram(waveform).clamp(min=1e-10).log()


class AmplitudeToDB(torch.nn.Module):
    """In decibels."""

    def __init__(self, stype: str = "power", top_db: Any = None) -> None:
        super().__init__()
        self.multiplier = 10.0 if stype == "power" else 20.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.amplitude_to_DB(x, self.multiplier)


class _Masking(torch.nn.Module):
    dimension = -1

    def __init__(self, mask_param: int = 0, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.longest = kwargs.get("freq_mask_param", kwargs.get("time_mask_param", mask_param))

    def forward(self, spectrum: torch.Tensor, mask_value: float = 0.0) -> torch.Tensor:
        size = spectrum.shape[self.dimension]
        length = int(torch.rand(1) * min(self.longest, size))
        start = int(torch.rand(1) * (size - length))
        found = spectrum.clone()
        found.narrow(self.dimension, start, length).fill_(mask_value)
        return found


class FrequencyMasking(_Masking):
    """Some frequencies are silent."""

    dimension = -2


class TimeMasking(_Masking):
    """Some time is silent."""


__getattr__ = others(__name__)
