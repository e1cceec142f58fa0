"""The keyboard, on which nothing is pressed."""

from __future__ import annotations

from typing import Any

from .constants import KEYS


class ScancodeWrapper(tuple[bool, ...]):
    """Whether each key is pressed: none is."""

    def __getitem__(self, key: Any) -> Any:
        return False


def get_pressed(*args: Any) -> ScancodeWrapper:
    """Whether each key is pressed."""
    return ScancodeWrapper([False] * 512)


get_just_pressed = get_just_released = get_pressed


def get_mods() -> int:
    """Which of shift, control and the like are pressed."""
    return 0


def get_focused() -> bool:
    """It is this window's."""
    return True


def name(key: int, *args: Any) -> str:
    """What a key is called."""
    names = {number: text.lower().replace("_", " ") for text, number in KEYS.items()}
    return names.get(key, "") if key else ""


def key_code(name: str) -> int:
    """The key that is called so."""
    return KEYS[name if len(name) == 1 else name.upper().replace(" ", "_")]


def set_repeat(*args: Any) -> None:
    """Nothing is pressed."""


set_mods = start_text_input = stop_text_input = set_text_input_rect = set_repeat


def get_repeat() -> tuple[int, int]:
    """Not at all."""
    return 0, 0
