"""Text: a box of its colour for each character that is seen."""

from __future__ import annotations

from typing import Any

from ...inert import others
from .surface import SRCALPHA, Surface


class Font:
    """Characters half as wide as they are high."""

    def __init__(self, name: Any = None, size: int = 12, *args: Any, **kwargs: Any) -> None:
        self._high = max(int(size), 1)

    def size(self, text: Any) -> tuple[int, int]:
        """Width and height of a text."""
        return len(text) * (self._high // 2 or 1), self._high

    def render(self, text: Any, antialias: Any, color: Any, background: Any = None, *args: Any) -> Surface:
        """A picture of a text."""
        made = Surface(self.size(text), 0 if background is not None else SRCALPHA)
        if background is not None:
            made.fill(background)
        wide = self._high // 2 or 1
        for number, one in enumerate(text):
            if str(one).strip():
                box = (
                    number * wide + wide // 8,
                    self._high // 4,
                    max(wide * 3 // 4, 1),
                    max(self._high // 2, 1),
                )
                made.fill(color, box)
        return made

    def get_height(self) -> int:
        """That of a line."""
        return self._high

    get_linesize = get_ascent = get_height

    def set_bold(self, *args: Any) -> None:
        """There is one kind of text."""

    set_italic = set_underline = set_bold


SysFont = Font


def get_init() -> bool:
    """It is ready."""
    return True


def get_default_font() -> str:
    """The name of the usual one."""
    return "freesansbold.ttf"


def get_fonts() -> list[str]:
    """None is known."""
    return []


def init() -> None:
    """It is ready."""


quit = init
__getattr__ = others(__name__)
