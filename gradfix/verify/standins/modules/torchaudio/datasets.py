"""Data sets of sounds: noise, a second each where that is enough."""

from __future__ import annotations

from typing import Any

import torch

from ... import media
from ...context import run
from ...inert import others

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
COUNT = 256


class Sounds(torch.utils.data.Dataset[Any]):
    """Sounds with what belongs to them."""

    rate = 16000

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        run().used("torchaudio.datasets." + type(self).__name__, f"{COUNT} made-up sounds")

    def __len__(self) -> int:
        return COUNT

    def sound(self, index: int) -> torch.Tensor:
        """The samples."""
        if not 0 <= index < COUNT:
            raise IndexError(index)
        return media.sound(run(), type(self).__name__ + str(index), self.rate)[None].float() / 32768

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError


class SPEECHCOMMANDS(Sounds):
    """Words."""

    _walker = tuple(WORDS)
    _path = "."

    def __getitem__(self, index: int) -> Any:
        return self.sound(index), self.rate, WORDS[index % len(WORDS)], str(index), index


class LIBRISPEECH(Sounds):
    """Sentences."""

    def __getitem__(self, index: int) -> Any:
        words = media.text(run(), "speech" + str(index), 1).strip(" .\n").upper()
        return self.sound(index), self.rate, words, index, index, index


class LJSPEECH(Sounds):
    """Sentences of one voice."""

    rate = 22050

    def __getitem__(self, index: int) -> Any:
        words = media.text(run(), "speech" + str(index), 1).strip()
        return self.sound(index), self.rate, words, words


class YESNO(Sounds):
    """Eight words each."""

    rate = 8000

    def __getitem__(self, index: int) -> Any:
        return self.sound(index), self.rate, [(index >> bit) & 1 for bit in range(8)]


class GTZAN(Sounds):
    """Music of ten kinds."""

    rate = 22050

    def __getitem__(self, index: int) -> Any:
        return self.sound(index), self.rate, str(index % 10)


__getattr__ = others(__name__)
