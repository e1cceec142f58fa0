"""Time: as long as a script says that a picture is shown; nobody waits."""

from __future__ import annotations

from typing import Any

_passed = [0]
TURN = 16
"""Milliseconds from one picture to the next where nothing is said."""


class Clock:
    """Says how long a turn took: as long as it was to take."""

    def __init__(self) -> None:
        self._last = 0

    def tick(self, framerate: float = 0) -> int:
        """The milliseconds of a turn."""
        self._last = int(1000 / framerate) if framerate else TURN
        _passed[0] += self._last
        return self._last

    tick_busy_loop = tick

    def get_time(self) -> int:
        """The milliseconds of the turn before."""
        return self._last

    get_rawtime = get_time

    def get_fps(self) -> float:
        """Turns in a second."""
        return 1000 / self._last if self._last else 0.0


def get_ticks() -> int:
    """The milliseconds that have passed: more each time that they are asked for."""
    _passed[0] += 1
    return _passed[0]


def wait(milliseconds: int) -> int:
    """Let time pass."""
    _passed[0] += int(milliseconds)
    return int(milliseconds)


delay = wait


def set_timer(*args: Any, **kwargs: Any) -> None:
    """Nothing happens by itself."""
