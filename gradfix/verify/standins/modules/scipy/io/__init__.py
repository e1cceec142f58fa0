"""Files of Matlab and of sound."""

from __future__ import annotations

import os
import wave
from typing import Any

import numpy

from .... import absent, content, media
from ....context import run


def loadmat(path: Any, *args: Any, **kwargs: Any) -> Any:
    """The arrays of a file: nobody knows them, for the file is not there or cannot be read without scipy."""
    return content.absent(run(), absent.named(path))


def savemat(*args: Any, **kwargs: Any) -> None:
    """Nothing is kept."""


def read(path: Any, *args: Any, **kwargs: Any) -> Any:
    """The rate and the samples of a sound."""
    if isinstance(path, (str, os.PathLike)) and not absent.is_absent(path):
        try:
            with open(path, "rb") as held, wave.open(held) as file:
                data = numpy.frombuffer(file.readframes(file.getnframes()), numpy.int16)
                shape = (-1, file.getnchannels()) if file.getnchannels() > 1 else (-1,)
                return file.getframerate(), data.reshape(shape)
        except (wave.Error, EOFError):
            pass
    name = absent.named(path)
    rate = media.rate_of_sounds()
    run().used("sounds *" + os.path.splitext(name)[1], f"{media.seconds_of_sounds()} s at {rate:,} Hz each")
    return rate, media.sound(run(), os.path.basename(name)).numpy()


from . import wavfile  # noqa: E402

__all__ = ["loadmat", "read", "savemat", "wavfile"]
