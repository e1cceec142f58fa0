"""pygame: games without a screen, sounds and keys. Rectangles, surfaces and pictures are as the real ones;
nothing is pressed, and nobody waits for time to pass."""

from __future__ import annotations

from typing import Any

from ...inert import others


class error(RuntimeError):
    """What pygame raises."""


# The modules raise it.
from . import (  # noqa: E402
    color,
    constants,
    display,
    draw,
    event,
    font,
    image,
    joystick,
    key,
    mask,
    math,
    mixer,
    mouse,
    rect,
    sprite,
    surface,
    surfarray,
    time,
    transform,
    version,
)
from .color import Color  # noqa: E402
from .mask import Mask  # noqa: E402
from .math import Vector2, Vector3  # noqa: E402
from .rect import FRect, Rect  # noqa: E402
from .surface import Surface  # noqa: E402

globals().update(constants.ALL)
ver = __version__ = version.ver
vernum = version.vernum


def init() -> tuple[int, int]:
    """How many modules are there, and how many are not."""
    return 5, 0


def quit(*args: Any) -> None:
    """The end of a game."""
    display.quit()


def get_init() -> bool:
    """It is."""
    return True


def register_quit(*args: Any) -> None:
    """Nothing has to be done at the end."""


def get_error() -> str:
    """There was none."""
    return ""


def set_error(*args: Any) -> None:
    """Nobody asks."""


def get_sdl_version(*args: Any) -> tuple[int, int, int]:
    """As of pygame 2.6."""
    return version.SDL


__all__ = list(constants.ALL)
__all__ += [
    "Color", "FRect", "Mask", "Rect", "Surface", "Vector2", "Vector3", "color", "constants", "display",
    "draw", "error", "event", "font", "get_error", "get_init", "get_sdl_version", "image", "init", "joystick",
    "key", "mask", "math", "mixer", "mouse", "quit", "rect", "register_quit", "set_error", "sprite",
    "surface", "surfarray", "time", "transform", "ver", "vernum", "version",
]  # fmt: skip
__getattr__ = others(__name__)
