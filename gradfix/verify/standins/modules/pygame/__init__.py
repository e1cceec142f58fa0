"""pygame: games as environments. Nobody plays, and nothing is shown; what is drawn can be learnt from."""

from __future__ import annotations

import types
from typing import Any

from ...inert import others
from .color import Color as Color
from .locals import *  # noqa: F403
from .math import Vector2 as Vector2
from .rect import Rect as Rect
from .surface import Surface as Surface

version = types.SimpleNamespace(ver="2.6.1", vernum=(2, 6, 1))
ver = version.ver


class error(RuntimeError):
    """What pygame raises."""


def init() -> tuple[int, int]:
    """All parts are ready."""
    return 5, 0


def get_init() -> bool:
    """They are."""
    return True


def quit(*args: Any) -> None:
    """Nothing is open."""


register_quit = quit
__getattr__ = others(__name__)
