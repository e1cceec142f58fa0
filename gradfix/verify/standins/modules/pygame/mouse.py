"""The mouse, which nobody moves."""

from __future__ import annotations

from typing import Any

at = [0, 0]


def get_pressed(num_buttons: int = 3, *args: Any) -> tuple[bool, ...]:
    """Whether each button is pressed: none is."""
    return (False,) * num_buttons


def get_pos() -> tuple[int, ...]:
    """Where it is."""
    return tuple(at)


def get_rel() -> tuple[int, int]:
    """How far it was moved."""
    return 0, 0


def set_pos(*to: Any) -> None:
    """Move it."""
    at[:] = to[0] if len(to) == 1 else to


def set_visible(*args: Any) -> bool:
    """It is not to be seen anyway."""
    return True


set_cursor = set_system_cursor = get_cursor = set_visible


def get_focused() -> bool:
    """It is in this window."""
    return True


get_visible = get_focused
