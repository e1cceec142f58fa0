"""The keyboard: no key is pressed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ...inert import others


class _Pressed(defaultdict):  # type: ignore[type-arg]
    def __init__(self) -> None:
        super().__init__(bool)

    def __iter__(self) -> Any:
        return iter([False] * 512)

    def __len__(self) -> int:
        return 512


def get_pressed() -> Any:
    """No key is."""
    return _Pressed()


def get_mods() -> int:
    """None is pressed."""
    return 0


def get_focused() -> bool:
    """The window has it, for all that a script knows."""
    return True


def set_repeat(*args: Any) -> None:
    """Nothing is."""


__getattr__ = others(__name__)
