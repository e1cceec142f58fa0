"""torchaudio: sounds, spectra and data sets of the right shapes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from ...inert import others
from .. import soundfile
from . import datasets, functional, transforms

__version__ = "2.0.0"
__all__ = ["datasets", "functional", "transforms"]


def load(path: Any, frame_offset: int = 0, num_frames: int = -1, *args: Any, **kwargs: Any) -> Any:
    """The samples, channels first, and their rate."""
    values, rate = soundfile.read(path, dtype="float32", always_2d=True)
    found = torch.from_numpy(values.T.copy())[:, frame_offset:]
    return (found[:, :num_frames] if num_frames > 0 else found), rate


def info(path: Any, *args: Any, **kwargs: Any) -> Any:
    """Rate and length."""
    known = soundfile.info(path)
    return SimpleNamespace(sample_rate=known.samplerate, num_frames=known.frames, num_channels=1)


def save(*args: Any, **kwargs: Any) -> None:
    """Nothing is kept or set."""


set_audio_backend = save


def get_audio_backend() -> str:
    """The reader."""
    return "soundfile"


__getattr__ = others(__name__)
