"""Sounds that nobody hears."""

from __future__ import annotations

import sys
from typing import Any


class Channel:
    """What plays sounds, one after the other."""

    def __init__(self, number: int = 0) -> None:
        self.volume = 1.0

    def play(self, *args: Any, **kwargs: Any) -> Any:
        """Nothing is heard."""

    stop = pause = unpause = fadeout = queue = set_endevent = load = unload = rewind = set_pos = play

    def set_volume(self, value: float, *args: Any) -> None:
        """How loud it is."""
        self.volume = min(1.0, max(0.0, float(value)))

    def get_volume(self) -> float:
        """How loud it is."""
        return self.volume

    def get_busy(self) -> bool:
        """It has come to its end."""
        return False

    def get_sound(self) -> None:
        """None."""

    get_queue = get_sound

    def get_pos(self) -> int:
        """Nothing is played."""
        return -1


class Sound(Channel):
    """A sound."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def play(self, *args: Any, **kwargs: Any) -> Channel:
        """What plays it."""
        return Channel()

    def get_length(self) -> float:
        """Seconds."""
        return 1.0

    def get_num_channels(self) -> int:
        """It is not played."""
        return 0


SoundType, ChannelType = Sound, Channel
music = Channel()
sys.modules[__name__ + ".music"] = music  # type: ignore[assignment]


def init(*args: Any, **kwargs: Any) -> None:
    """It is there."""


pre_init = quit = stop = pause = unpause = fadeout = init


def get_init() -> tuple[int, int, int]:
    """Values of a second, their bits, and how many sounds at once."""
    return 44100, -16, 2


def set_num_channels(count: int) -> int:
    """As many as one likes."""
    return count


set_reserved = set_num_channels


def get_num_channels() -> int:
    """How many play."""
    return 8


def find_channel(*args: Any, **kwargs: Any) -> Channel:
    """One that is free."""
    return Channel()


def get_busy() -> bool:
    """No."""
    return False
