"""retro: games of old consoles; buttons are pressed together, or chosen by number."""

from __future__ import annotations

import sys
from typing import Any

from ..context import run
from ..environments import EPISODE
from ..spaces import Box, Discrete, MultiBinary, MultiDiscrete
from ..worlds import World


class Actions:
    """How buttons are chosen."""

    ALL, FILTERED, DISCRETE, MULTI_DISCRETE = range(4)


class Observations:
    """What is seen."""

    IMAGE, RAM = range(2)


class State:
    """Where a game begins."""

    DEFAULT, NONE = -1, 0


class RetroEnv(World):
    """A game."""

    def __init__(self, game: str, state: Any = None, scenario: Any = None, **kwargs: Any) -> None:
        small = str(game).endswith(("-Nes", "-GameBoy", "-Sms", "-Atari2600"))
        self.buttons = ["B", None, "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT", "A"]
        self.buttons += [] if small else ["C", "X", "Y"]
        chosen: dict[Any, Any] = {
            Actions.DISCRETE: Discrete(36),
            Actions.MULTI_DISCRETE: MultiDiscrete([3, 3, 3]),
        }
        actions = chosen.get(kwargs.get("use_restricted_actions"), MultiBinary(len(self.buttons)))
        screen = Box(0, 255, (224, 240 if small else 320, 3), "uint8")
        super().__init__(str(game), screen, actions)
        self.gamename, self.statename = game, state
        run().used("environment " + str(game), f"random states {screen.shape}, episodes of {EPISODE} steps")

    def load_state(self, *args: Any, **kwargs: Any) -> None:
        """The states are random anyway."""

    def get_screen(self) -> Any:
        """What is seen now."""
        return self.state


def make(game: str, state: Any = None, **kwargs: Any) -> RetroEnv:
    """A game."""
    return RetroEnv(game, state, **kwargs)


data = enums = sys.modules[__name__]
