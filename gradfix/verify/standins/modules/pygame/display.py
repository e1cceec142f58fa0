"""The window: nobody sees it."""

from __future__ import annotations

import types
from typing import Any

from ...inert import others
from .surface import Surface

_shown: list[Surface] = []


def set_mode(size: Any = (0, 0), *args: Any, **kwargs: Any) -> Surface:
    """The surface of a window, as large as the screen if nothing is said."""
    _shown[:] = [Surface(size if any(size) else (1920, 1080))]
    return _shown[0]


def get_surface() -> Surface | None:
    """The surface of the window, if there is one."""
    return _shown[0] if _shown else None


def Info() -> Any:
    """The size of a usual screen."""
    wide, high = _shown[0].get_size() if _shown else (1920, 1080)
    return types.SimpleNamespace(current_w=wide, current_h=high, bitsize=32, bytesize=4, hw=0, wm=1)


def get_init() -> bool:
    """It is ready."""
    return True


def get_active() -> bool:
    """It is shown, for all that a script knows."""
    return True


def list_modes(*args: Any) -> list[tuple[int, int]]:
    """The size of a usual screen."""
    return [(1920, 1080)]


def get_driver() -> str:
    """The name of the one that shows nothing."""
    return "dummy"


def get_caption() -> tuple[str, str]:
    """Nothing stands there."""
    return "", ""


def update(*args: Any, **kwargs: Any) -> None:
    """Nobody sees it."""


flip = set_caption = set_icon = init = quit = toggle_fullscreen = set_palette = update
__getattr__ = others(__name__)
