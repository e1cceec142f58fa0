"""Joysticks, of which there are none."""

from typing import Any


def init() -> None:
    """There are none."""


quit = init


def get_init() -> bool:
    """It is."""
    return True


def get_count() -> int:
    """None."""
    return 0


class Joystick:
    """There are none."""

    def __init__(self, number: Any) -> None:
        from . import error

        raise error("Invalid joystick device number")


JoystickType = Joystick
