"""Colours: red, green, blue and alpha, bytes."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from typing import Any

NAMED = """
aliceblue:f0f8ff antiquewhite:faebd7 aqua:00ffff aquamarine:7fffd4 azure:f0ffff beige:f5f5dc bisque:ffe4c4
black:000000 blanchedalmond:ffebcd blue:0000ff blueviolet:8a2be2 brown:a52a2a burlywood:deb887
cadetblue:5f9ea0 chartreuse:7fff00 chocolate:d2691e coral:ff7f50 cornflowerblue:6495ed cornsilk:fff8dc
crimson:dc143c cyan:00ffff darkblue:00008b darkcyan:008b8b darkgoldenrod:b8860b darkgray:a9a9a9
darkgreen:006400 darkgrey:a9a9a9 darkkhaki:bdb76b darkmagenta:8b008b darkolivegreen:556b2f darkorange:ff8c00
darkorchid:9932cc darkred:8b0000 darksalmon:e9967a darkseagreen:8fbc8f darkslateblue:483d8b
darkslategray:2f4f4f darkslategrey:2f4f4f darkturquoise:00ced1 darkviolet:9400d3 deeppink:ff1493
deepskyblue:00bfff dimgray:696969 dimgrey:696969 dodgerblue:1e90ff firebrick:b22222 floralwhite:fffaf0
forestgreen:228b22 fuchsia:ff00ff gainsboro:dcdcdc ghostwhite:f8f8ff gold:ffd700 goldenrod:daa520
gray:bebebe green:00ff00 greenyellow:adff2f grey:bebebe honeydew:f0fff0 hotpink:ff69b4 indianred:cd5c5c
indigo:4b0082 ivory:fffff0 khaki:f0e68c lavender:e6e6fa lavenderblush:fff0f5 lawngreen:7cfc00
lemonchiffon:fffacd lightblue:add8e6 lightcoral:f08080 lightcyan:e0ffff lightgoldenrod:eedd82
lightgoldenrodyellow:fafad2 lightgray:d3d3d3 lightgreen:90ee90 lightgrey:d3d3d3 lightpink:ffb6c1
lightsalmon:ffa07a lightseagreen:20b2aa lightskyblue:87cefa lightslateblue:8470ff lightslategray:778899
lightslategrey:778899 lightsteelblue:b0c4de lightyellow:ffffe0 lime:00ff00 limegreen:32cd32 linen:faf0e6
magenta:ff00ff maroon:b03060 mediumaquamarine:66cdaa mediumblue:0000cd mediumorchid:ba55d3
mediumpurple:9370db mediumseagreen:3cb371 mediumslateblue:7b68ee mediumspringgreen:00fa9a
mediumturquoise:48d1cc mediumvioletred:c71585 midnightblue:191970 mintcream:f5fffa mistyrose:ffe4e1
moccasin:ffe4b5 navajowhite:ffdead navy:000080 navyblue:000080 oldlace:fdf5e6 olive:808000 olivedrab:6b8e23
orange:ffa500 orangered:ff4500 orchid:da70d6 palegoldenrod:eee8aa palegreen:98fb98 paleturquoise:afeeee
palevioletred:db7093 papayawhip:ffefd5 peachpuff:ffdab9 peru:cd853f pink:ffc0cb plum:dda0dd
powderblue:b0e0e6 purple:a020f0 red:ff0000 rosybrown:bc8f8f royalblue:4169e1 saddlebrown:8b4513
salmon:fa8072 sandybrown:f4a460 seagreen:2e8b57 seashell:fff5ee sienna:a0522d silver:c0c0c0 skyblue:87ceeb
slateblue:6a5acd slategray:708090 slategrey:708090 snow:fffafa springgreen:00ff7f steelblue:4682b4
tan:d2b48c teal:008080 thistle:d8bfd8 tomato:ff6347 turquoise:40e0d0 violet:ee82ee violetred:d02090
wheat:f5deb3 white:ffffff whitesmoke:f5f5f5 yellow:ffff00 yellowgreen:9acd32
"""
THECOLORS = {name: (*bytes.fromhex(value), 255) for name, value in (one.split(":") for one in NAMED.split())}


def four(given: Any) -> list[int]:
    """The bytes of what a colour may be given as: a name, ``#rrggbb``, a number, three bytes or four."""
    while isinstance(given, (tuple, list)) and len(given) == 1:
        given = given[0]
    if isinstance(given, str):
        text = given.replace(" ", "").lower()
        if text in THECOLORS:
            return list(THECOLORS[text])
        digits = text[1:] if text[:1] == "#" else text[2:] if text[:2] == "0x" else ""
        if len(digits) not in (6, 8):
            raise ValueError("invalid color name")
        held = list(bytes.fromhex(digits))
        return held if len(held) == 4 else [*held, 255]
    if isinstance(given, int):
        return [given >> shift & 255 for shift in (24, 16, 8, 0)]
    held = [int(one) for one in given]
    if len(held) not in (3, 4) or any(not 0 <= one <= 255 for one in held):
        raise ValueError("invalid color argument")
    return held if len(held) == 4 else [*held, 255]


class Color:
    """A colour."""

    r: int
    g: int
    b: int
    a: int

    def __init__(self, *given: Any) -> None:
        self.r, self.g, self.b, self.a = four(given)

    def update(self, *given: Any) -> None:
        """Take other values."""
        self.r, self.g, self.b, self.a = four(given)

    def __iter__(self) -> Iterator[int]:
        return iter((self.r, self.g, self.b, self.a))

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: Any) -> Any:
        return (self.r, self.g, self.b, self.a)[index]

    def __setitem__(self, index: int, value: int) -> None:
        setattr(self, "rgba"[index], int(value))

    def __eq__(self, other: object) -> bool:
        try:
            return list(self) == four(other if isinstance(other, (tuple, list)) else list(other))  # type: ignore[call-overload]
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return int(self)

    def __int__(self) -> int:
        return self.r << 24 | self.g << 16 | self.b << 8 | self.a

    def __repr__(self) -> str:
        return f"Color({self.r}, {self.g}, {self.b}, {self.a})"

    def __add__(self, other: Any) -> Color:
        return Color(*(min(255, a + b) for a, b in zip(self, four(tuple(other)))))

    def __sub__(self, other: Any) -> Color:
        return Color(*(max(0, a - b) for a, b in zip(self, four(tuple(other)))))

    def __mul__(self, other: Any) -> Color:
        return Color(*(min(255, a * b) for a, b in zip(self, four(tuple(other)))))

    def __invert__(self) -> Color:
        return Color(*(255 - one for one in self))

    def lerp(self, other: Any, amount: float) -> Color:
        """Between two colours."""
        return Color(*(round(a + (b - a) * amount) for a, b in zip(self, Color(other))))

    def normalize(self) -> tuple[float, ...]:
        """Numbers up to 1."""
        return tuple(one / 255 for one in self)

    @property
    def hsva(self) -> tuple[float, ...]:
        """Hue in degrees, saturation, value and alpha in hundredths."""
        hue, full, value = colorsys.rgb_to_hsv(self.r / 255, self.g / 255, self.b / 255)
        return hue * 360, full * 100, value * 100, self.a / 2.55

    @hsva.setter
    def hsva(self, given: Any) -> None:
        hue, full, value, *alpha = given
        self._take(colorsys.hsv_to_rgb(hue / 360, full / 100, value / 100), alpha)

    @property
    def hsla(self) -> tuple[float, ...]:
        """Hue in degrees, saturation, lightness and alpha in hundredths."""
        hue, light, full = colorsys.rgb_to_hls(self.r / 255, self.g / 255, self.b / 255)
        return hue * 360, full * 100, light * 100, self.a / 2.55

    @hsla.setter
    def hsla(self, given: Any) -> None:
        hue, full, light, *alpha = given
        self._take(colorsys.hls_to_rgb(hue / 360, light / 100, full / 100), alpha)

    def _take(self, colour: Any, alpha: list[float]) -> None:
        self.r, self.g, self.b = (int(one * 255) for one in colour)
        self.a = int(alpha[0] * 2.55) if alpha else 255
