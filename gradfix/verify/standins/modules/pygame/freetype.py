"""Fonts, whose letters are not drawn."""

from .font import Freetype as Font
from .font import get_default_font, get_init, init, quit


def SysFont(name: object, size: float, *args: object, **kwargs: object) -> Font:
    """A font of the machine's."""
    return Font(name or "", size)


__all__ = ["Font", "SysFont", "get_default_font", "get_init", "init", "quit"]
