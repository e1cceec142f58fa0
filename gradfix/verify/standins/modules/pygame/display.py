"""The screen: a surface that nobody looks at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .surface import Surface

SIZE = (1920, 1080)
"""Width and height of the screen that there would be."""
shown: Surface | None = None
titles = ["pygame window", ""]


def init() -> None:
    """It is there."""


def quit() -> None:
    """Nothing is shown from here on."""
    global shown
    shown = None


def get_init() -> bool:
    """It is."""
    return True


def set_mode(size: Any = (0, 0), *args: Any, **kwargs: Any) -> Surface:
    """The screen."""
    global shown
    wide, high = size
    shown = Surface((int(wide) or SIZE[0], int(high) or SIZE[1]))
    return shown


def get_surface() -> Surface | None:
    """The screen."""
    return shown


def flip(*args: Any, **kwargs: Any) -> None:
    """Nothing is shown."""


update = set_icon = set_gamma = set_palette = iconify = toggle_fullscreen = set_allow_screensaver = flip


def set_caption(title: str = "", icontitle: str = "") -> None:
    """The title of the window."""
    titles[:] = [title, icontitle or title]


def get_caption() -> tuple[str, ...]:
    """The title of the window."""
    return tuple(titles)


def get_window_size() -> tuple[int, int]:
    """Width and height of the window."""
    return SIZE if shown is None else shown.get_size()


def get_desktop_sizes() -> list[tuple[int, int]]:
    """Width and height of each screen."""
    return [SIZE]


def list_modes(*args: Any, **kwargs: Any) -> list[tuple[int, int]]:
    """The sizes that there are."""
    return [SIZE, (1280, 720), (800, 600), (640, 480)]


def mode_ok(*args: Any, **kwargs: Any) -> int:
    """Bits of a pixel."""
    return 32


def get_active() -> bool:
    """Nothing is in front of it."""
    return True


def get_driver() -> str:
    """The one for where there is no screen."""
    return "dummy"


def get_num_displays() -> int:
    """One."""
    return 1


def Info() -> SimpleNamespace:
    """What the screen can do."""
    wide, high = get_window_size()
    return SimpleNamespace(hw=0, wm=0, bitsize=32, bytesize=4, video_mem=0, current_w=wide, current_h=high)
