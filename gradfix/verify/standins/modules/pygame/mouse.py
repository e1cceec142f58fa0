"""The mouse: it lies still."""

from __future__ import annotations

from typing import Any

from ...inert import others


def get_pressed(num_buttons: int = 3) -> tuple[bool, ...]:
    """No button is."""
    return (False,) * num_buttons


def get_pos() -> tuple[int, int]:
    """At the corner."""
    return 0, 0


get_rel = get_pos


def set_visible(*args: Any) -> bool:
    """It was."""
    return True


__getattr__ = others(__name__)
