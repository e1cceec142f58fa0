"""Fonts. Letters are not drawn: a text has about the size that it would have."""

from __future__ import annotations

from typing import Any

from .constants import FLAGS
from .rect import Rect
from .surface import Surface

HIGH, WIDE = 1.15, 0.52
"""A line's height and a letter's width, by the size of a font."""
DEFAULT = 0.6
"""How large a size is in the font without a name."""


class Font:
    """A font."""

    def __init__(self, name: Any = None, size: float = 12, *args: Any, **kwargs: Any) -> None:
        self.points = float(size) * (DEFAULT if name is None else 1.0)
        self.bold = self.italic = self.underline = self.strikethrough = False

    def size(self, text: Any) -> tuple[int, int]:
        """Width and height of a text."""
        return round(len(text) * self.points * WIDE), self.get_height()

    def render(self, text: Any, antialias: Any = True, color: Any = None, background: Any = None) -> Surface:
        """A text, whose letters are not drawn."""
        made = Surface(self.size(str(text or "")), 0 if background is not None else FLAGS["SRCALPHA"])
        if background is not None:
            made.fill(background)
        return made

    def get_height(self) -> int:
        """Height of a line."""
        return round(self.points * HIGH)

    get_linesize = get_height

    def get_ascent(self) -> int:
        """Height above the line that letters stand on."""
        return round(self.points * 0.9)

    def get_descent(self) -> int:
        """Height below it."""
        return self.get_ascent() - self.get_height()

    def metrics(self, text: Any) -> list[tuple[int, ...]]:
        """The edges of each letter."""
        wide = round(self.points * WIDE)
        return [(0, wide, 0, self.get_ascent(), wide)] * len(text)

    def set_bold(self, value: Any) -> None:
        """Letters are not drawn."""

    set_italic = set_underline = set_strikethrough = set_script = set_direction = set_bold

    def get_bold(self) -> bool:
        """Letters are not drawn."""
        return False

    get_italic = get_underline = get_strikethrough = get_bold


FontType = Font


def SysFont(name: Any, size: float, bold: Any = False, italic: Any = False, *args: Any) -> Font:
    """A font of the machine's."""
    return Font(name or "", size)


def init() -> None:
    """It is there."""


quit = init


def get_init() -> bool:
    """It is."""
    return True


def get_default_font() -> str:
    """The font without a name."""
    return "freesansbold.ttf"


def get_fonts() -> list[str]:
    """The fonts of the machine."""
    return ["arial", "couriernew", "timesnewroman"]


def match_font(*args: Any, **kwargs: Any) -> str:
    """The file of a font."""
    return get_default_font()


class Freetype(Font):
    """A font of ``pygame.freetype``, which gives where a text lies as well."""

    def render(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        """A text, whose letters are not drawn, and its rectangle."""
        made = super().render(text)
        return made, made.get_rect()

    def render_to(self, surf: Surface, dest: Any, text: Any, *args: Any, **kwargs: Any) -> Rect:
        """Nothing is drawn."""
        return Rect(*dest[:2], *self.size(str(text or "")))

    def get_rect(self, text: Any, *args: Any, **kwargs: Any) -> Rect:
        """The rectangle of a text."""
        return Rect(0, 0, *self.size(text))
