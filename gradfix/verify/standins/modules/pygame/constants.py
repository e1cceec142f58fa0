"""Numbers of keys, events and flags, by the names that pygame gives them."""

from __future__ import annotations

import string
from typing import Any

SCANCODE = 1 << 30
"""Added to a key's place on the keyboard where it has no character."""
KEYS: dict[str, int] = {
    "UNKNOWN": 0,
    **{one: ord(one) for one in string.ascii_lowercase + string.digits},
    **{f"F{number}": SCANCODE + 57 + number for number in range(1, 13)},
    **{f"F{number}": SCANCODE + 91 + number for number in range(13, 16)},
    **{f"KP{line}{number}": SCANCODE + 88 + (number or 10) for line in ("", "_") for number in range(10)},
}
CHARACTERS = (
    ("SPACE", " "), ("RETURN", "\r"), ("ESCAPE", "\x1b"), ("BACKSPACE", "\b"), ("TAB", "\t"),
    ("DELETE", "\x7f"), ("EXCLAIM", "!"), ("QUOTEDBL", '"'), ("HASH", "#"), ("DOLLAR", "$"),
    ("PERCENT", "%"), ("AMPERSAND", "&"), ("QUOTE", "'"), ("LEFTPAREN", "("), ("RIGHTPAREN", ")"),
    ("ASTERISK", "*"), ("PLUS", "+"), ("COMMA", ","), ("MINUS", "-"), ("PERIOD", "."), ("SLASH", "/"),
    ("COLON", ":"), ("SEMICOLON", ";"), ("LESS", "<"), ("EQUALS", "="), ("GREATER", ">"),
    ("QUESTION", "?"), ("AT", "@"), ("LEFTBRACKET", "["), ("BACKSLASH", "\\"), ("RIGHTBRACKET", "]"),
    ("CARET", "^"), ("UNDERSCORE", "_"), ("BACKQUOTE", "`"),
)  # fmt: skip
PLACES = (
    ("CAPSLOCK", 57), ("PRINT", 70), ("PRINTSCREEN", 70), ("SCROLLLOCK", 71), ("SCROLLOCK", 71),
    ("BREAK", 72), ("PAUSE", 72), ("INSERT", 73), ("HOME", 74), ("PAGEUP", 75), ("END", 77),
    ("PAGEDOWN", 78), ("RIGHT", 79), ("LEFT", 80), ("DOWN", 81), ("UP", 82), ("NUMLOCK", 83),
    ("NUMLOCKCLEAR", 83), ("KP_DIVIDE", 84), ("KP_MULTIPLY", 85), ("KP_MINUS", 86), ("KP_PLUS", 87),
    ("KP_ENTER", 88), ("KP_PERIOD", 99), ("POWER", 102), ("KP_EQUALS", 103), ("HELP", 117), ("MENU", 118),
    ("SYSREQ", 154), ("CLEAR", 156), ("LCTRL", 224), ("LSHIFT", 225), ("LALT", 226), ("LGUI", 227),
    ("LMETA", 227), ("LSUPER", 227), ("RCTRL", 228), ("RSHIFT", 229), ("RALT", 230), ("RGUI", 231),
    ("RMETA", 231), ("RSUPER", 231), ("MODE", 257),
)  # fmt: skip
KEYS.update((name, ord(character)) for name, character in CHARACTERS)
KEYS.update((name, SCANCODE + place) for name, place in PLACES)
HELD = {
    "NONE": 0, "LSHIFT": 1, "RSHIFT": 2, "SHIFT": 3, "LCTRL": 64, "RCTRL": 128, "CTRL": 192, "LALT": 256,
    "RALT": 512, "ALT": 768, "LMETA": 1024, "RMETA": 2048, "META": 3072, "LGUI": 1024, "RGUI": 2048,
    "GUI": 3072, "NUM": 4096, "CAPS": 8192, "MODE": 16384,
}  # fmt: skip
"""Keys that are held while another one is pressed."""
EVENTS = {
    "NOEVENT": 0, "QUIT": 256, "KEYDOWN": 768, "KEYUP": 769, "TEXTEDITING": 770, "TEXTINPUT": 771,
    "MOUSEMOTION": 1024, "MOUSEBUTTONDOWN": 1025, "MOUSEBUTTONUP": 1026, "MOUSEWHEEL": 1027,
    "JOYAXISMOTION": 1536, "JOYBALLMOTION": 1537, "JOYHATMOTION": 1538, "JOYBUTTONDOWN": 1539,
    "JOYBUTTONUP": 1540, "JOYDEVICEADDED": 1541, "JOYDEVICEREMOVED": 1542, "FINGERDOWN": 1792,
    "FINGERUP": 1793, "FINGERMOTION": 1794, "DROPFILE": 4096, "DROPTEXT": 4097, "ACTIVEEVENT": 32768,
    "VIDEORESIZE": 32769, "VIDEOEXPOSE": 32770, "WINDOWSHOWN": 32774, "WINDOWHIDDEN": 32775,
    "WINDOWEXPOSED": 32776, "WINDOWMOVED": 32777, "WINDOWRESIZED": 32778, "WINDOWSIZECHANGED": 32779,
    "WINDOWMINIMIZED": 32780, "WINDOWMAXIMIZED": 32781, "WINDOWRESTORED": 32782, "WINDOWENTER": 32783,
    "WINDOWLEAVE": 32784, "WINDOWFOCUSGAINED": 32785, "WINDOWFOCUSLOST": 32786, "WINDOWCLOSE": 32787,
    "SYSWMEVENT": 513, "USEREVENT": 32866, "NUMEVENTS": 65535,
}  # fmt: skip
FLAGS = {
    "SWSURFACE": 0, "HWSURFACE": 1, "OPENGL": 2, "ASYNCBLIT": 4, "RESIZABLE": 16, "NOFRAME": 32,
    "SHOWN": 64, "HIDDEN": 128, "HWACCEL": 256, "SCALED": 512, "SRCCOLORKEY": 4096, "RLEACCELOK": 8192,
    "RLEACCEL": 16384, "SRCALPHA": 65536, "PREALLOC": 1 << 24, "ANYFORMAT": 1 << 28, "HWPALETTE": 1 << 29,
    "DOUBLEBUF": 1 << 30, "FULLSCREEN": -(1 << 31), "BLEND_ADD": 1, "BLEND_SUB": 2, "BLEND_MULT": 3,
    "BLEND_MIN": 4, "BLEND_MAX": 5, "BLEND_RGB_ADD": 1, "BLEND_RGB_SUB": 2, "BLEND_RGB_MULT": 3,
    "BLEND_RGB_MIN": 4, "BLEND_RGB_MAX": 5, "BLEND_RGBA_ADD": 6, "BLEND_RGBA_SUB": 7, "BLEND_RGBA_MULT": 8,
    "BLEND_RGBA_MIN": 9, "BLEND_RGBA_MAX": 16, "BLEND_PREMULTIPLIED": 17, "BLEND_ALPHA_SDL2": 18,
    "BUTTON_LEFT": 1, "BUTTON_MIDDLE": 2, "BUTTON_RIGHT": 3, "BUTTON_WHEELUP": 4, "BUTTON_WHEELDOWN": 5,
    "TIMER_RESOLUTION": 0, "SYSTEM_CURSOR_ARROW": 0, "SYSTEM_CURSOR_IBEAM": 1, "SYSTEM_CURSOR_WAIT": 2,
    "SYSTEM_CURSOR_CROSSHAIR": 3, "SYSTEM_CURSOR_HAND": 11, "HAT_CENTERED": 0, "HAT_UP": 1, "HAT_RIGHT": 2,
    "HAT_DOWN": 4, "HAT_LEFT": 8,
}  # fmt: skip
ALL: dict[str, Any] = {
    **EVENTS,
    **FLAGS,
    **{"K_" + name: number for name, number in KEYS.items()},
    **{"KMOD_" + name: number for name, number in HELD.items()},
}
globals().update(ALL)
__all__ = list(ALL)
