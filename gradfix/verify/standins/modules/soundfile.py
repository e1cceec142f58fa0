"""soundfile: sounds of files, made up where they are not there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ..content import numpy
from .scipy.io import read as read_wave


def read(path: Any, *args: Any, dtype: str = "float64", always_2d: bool = False, **kwargs: Any) -> Any:
    """The samples, between -1 and 1, and their rate."""
    rate, values = read_wave(path)
    values = values[: kwargs["frames"]] if kwargs.get("frames", -1) > 0 else values
    found = values if dtype == "int16" else (values / 32768).astype(dtype)
    return (found[:, None] if always_2d and found.ndim == 1 else found), rate


def write(*args: Any, **kwargs: Any) -> None:
    """Nothing is kept."""


def info(path: Any, *args: Any, **kwargs: Any) -> Any:
    """Rate and length."""
    rate, values = read_wave(path)
    return SimpleNamespace(samplerate=rate, frames=len(values), duration=len(values) / rate, channels=1)


class SoundFile:
    """A sound."""

    def __init__(self, path: Any, *args: Any, **kwargs: Any) -> None:
        self.values, self.samplerate = read(path)
        self.frames = len(self.values)

    def read(self, *args: Any, **kwargs: Any) -> Any:
        """The samples."""
        return numpy().asarray(self.values)

    def __len__(self) -> int:
        return self.frames

    def __enter__(self) -> SoundFile:
        return self

    def __exit__(self, *error: Any) -> None:
        pass
