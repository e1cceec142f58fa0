"""Time as a game takes it: nobody waits, and each frame is as long as it should be."""

from __future__ import annotations

from typing import Any

STEP = 1
"""Milliseconds that pass where none are asked for."""
passed = 0
timers: dict[int, list[Any]] = {}
"""What is posted again and again: every how many milliseconds, when next, and how often still."""


def wait(milliseconds: float) -> int:
    """Let time pass."""
    global passed
    passed += max(STEP, int(milliseconds))
    return int(milliseconds)


delay = wait


def get_ticks() -> int:
    """Milliseconds since the beginning."""
    wait(STEP)
    return passed


def set_timer(event: Any, millis: int, loops: Any = 0) -> None:
    """Post an event again and again."""
    kind = event if isinstance(event, int) else event.type
    timers.pop(kind, None)
    if millis > 0:
        timers[kind] = [event, int(millis), passed + int(millis), int(loops) or -1]


def due() -> list[Any]:
    """The events whose time has come."""
    found = []
    for kind, timer in list(timers.items()):
        event, every, at, left = timer
        if passed >= at:
            found.append(event)
            timers[kind] = [event, every, passed + every, left - 1]
            if left == 1:
                del timers[kind]
    return found


class Clock:
    """What a game waits for from one frame to the next."""

    def __init__(self) -> None:
        self.last, self.taken = passed, 0

    def tick(self, framerate: float = 0) -> int:
        """Milliseconds since the last frame: as many as there should be."""
        wait(1000 / framerate if framerate else STEP)
        self.taken, self.last = passed - self.last, passed
        return self.taken

    tick_busy_loop = tick

    def get_time(self) -> int:
        """Milliseconds between the last two frames."""
        return self.taken

    get_rawtime = get_time

    def get_fps(self) -> float:
        """Frames in a second."""
        return 1000 / self.taken if self.taken else 0.0
