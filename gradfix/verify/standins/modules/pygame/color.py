"""Colours: red, green, blue and how opaque, each up to 255."""

from __future__ import annotations

from typing import Any

THECOLORS: dict[str, tuple[int, int, int, int]] = {
    name: (*rgb, 255)
    for name, rgb in {
        "black": (0, 0, 0),
        "white": (255, 255, 255),
        "red": (255, 0, 0),
        "green": (0, 255, 0),
        "blue": (0, 0, 255),
        "yellow": (255, 255, 0),
        "cyan": (0, 255, 255),
        "magenta": (255, 0, 255),
        "orange": (255, 165, 0),
        "purple": (160, 32, 240),
        "brown": (165, 42, 42),
        "pink": (255, 192, 203),
        "gold": (255, 215, 0),
        "navy": (0, 0, 128),
        "gray": (190, 190, 190),
        "grey": (190, 190, 190),
        "darkgreen": (0, 100, 0),
        "darkblue": (0, 0, 139),
        "darkred": (139, 0, 0),
        "darkgray": (169, 169, 169),
        "lightgray": (211, 211, 211),
        "lightblue": (173, 216, 230),
        "lightgreen": (144, 238, 144),
        "skyblue": (135, 206, 235),
    }.items()
}
"""The usual ones of their names."""


class Color(tuple):  # type: ignore[type-arg]
    """A colour by its parts, its name, or ``#rrggbb``."""

    def __new__(cls, *given: Any) -> Color:
        """Of three or four numbers, a sequence of these, a name, or one number ``0xrrggbbaa``."""
        values: Any = given[0] if len(given) == 1 else given
        if isinstance(values, str):
            name = values.lower().replace(" ", "")
            if name.startswith(("#", "0x")):
                digits = name.lstrip("#").removeprefix("0x")
                values = tuple(int(digits[at : at + 2], 16) for at in range(0, len(digits), 2))
            elif name in THECOLORS:
                values = THECOLORS[name]
            else:
                raise ValueError("invalid color name")
        elif isinstance(values, int):
            values = tuple((values >> shift) & 255 for shift in (24, 16, 8, 0))
        parts = tuple(int(value) for value in values)
        if len(parts) not in (3, 4) or not all(0 <= value <= 255 for value in parts):
            raise ValueError("invalid color argument")
        return super().__new__(cls, (*parts, 255)[:4])

    @property
    def r(self) -> int:
        """Red."""
        return int(self[0])

    @property
    def g(self) -> int:
        """Green."""
        return int(self[1])

    @property
    def b(self) -> int:
        """Blue."""
        return int(self[2])

    @property
    def a(self) -> int:
        """How opaque."""
        return int(self[3])
