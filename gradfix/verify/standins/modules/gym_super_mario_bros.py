"""gym_super_mario_bros: a game whose pictures are random."""

from __future__ import annotations

import sys
from typing import Any

from ..environments import make

RIGHT_ONLY = [["NOOP"], ["right"], ["right", "A"], ["right", "B"], ["right", "A", "B"]]
SIMPLE_MOVEMENT = [*RIGHT_ONLY, ["A"], ["left"]]
COMPLEX_MOVEMENT = [*SIMPLE_MOVEMENT, ["left", "A"], ["left", "B"], ["left", "A", "B"], ["down"], ["up"]]
actions = sys.modules[__name__]
__all__ = ["COMPLEX_MOVEMENT", "RIGHT_ONLY", "SIMPLE_MOVEMENT", "actions", "make"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return sys.modules[__name__]
