"""ple: learning to play games that pygame draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import media
from ...context import run
from ...environments import EPISODE
from ...inert import others
from . import games

NOTHING = 1073741930
"""The key that none of the games has (F15)."""


class PLE:
    """A game that an agent plays."""

    def __init__(
        self,
        game: Any,
        fps: int = 30,
        frame_skip: int = 1,
        num_steps: int = 1,
        reward_values: Any = None,
        force_fps: bool = True,
        display_screen: bool = False,
        add_noop_action: bool = True,
        NOOP: Any = NOTHING,
        state_preprocessor: Any = None,
        rng: Any = 24,
    ) -> None:
        self.game, self.fps, self.NOOP = game, fps, NOOP
        self.frame_skip, self.num_steps, self.force_fps = frame_skip, num_steps, force_fps
        self.display_screen, self.add_noop_action = display_screen, add_noop_action
        self.rng = rng if isinstance(rng, np.random.RandomState) else np.random.RandomState(rng)
        self.last_action: list[Any] = []
        self.action: list[Any] = []
        self.frame_count = 0
        game.adjustRewards(reward_values or {})
        game.setRNG(self.rng)
        run().used("game " + type(game).__name__, f"random screens and states, episodes of {EPISODE} steps")
        self.init()
        self.state_preprocessor = state_preprocessor
        self.state_dim: Any = None
        if state_preprocessor is not None:
            self.state_dim = state_preprocessor(self._told()).shape

    def init(self) -> None:
        """Begin."""
        self.game.init()

    reset_game = init

    def _told(self) -> Any:
        told = self.game.getGameState()
        if told is None:
            raise ValueError("Asked to return non-visual state on game that does not support it!")
        return told

    def getActionSet(self) -> list[Any]:
        """The keys, and to press none."""
        return [*self.game.getActions(), *([self.NOOP] if self.add_noop_action else [])]

    def getFrameNumber(self) -> int:
        """How often somebody acted."""
        return self.frame_count

    def game_over(self) -> bool:
        """Whether it is over."""
        return bool(self.game.game_over())

    def score(self) -> float:
        """The rewards so far."""
        return float(self.game.getScore())

    def lives(self) -> int:
        """How often one may still lose."""
        return int(self.game.lives)

    def getScreenRGB(self) -> Any:
        """What is seen, width x height x 3."""
        return self.game.getScreenRGB()

    def getScreenGrayscale(self) -> Any:
        """The same without colours, width x height."""
        return (self.getScreenRGB() @ np.array([0.21, 0.72, 0.07])).round().astype(np.uint8)

    def saveScreen(self, filename: Any) -> None:
        """Write what is seen."""
        media.keep_array(filename, self.getScreenRGB())

    def getScreenDims(self) -> tuple[int, int]:
        """Width and height."""
        wide, high = self.game.getScreenDims()
        return wide, high

    def getGameStateDims(self) -> Any:
        """The shape of what is told, if it is made an array."""
        return self.state_dim

    def getGameState(self) -> Any:
        """What is told."""
        told = self._told()
        return told if self.state_preprocessor is None else self.state_preprocessor(told)

    def act(self, action: Any) -> float:
        """Press a key; the rewards for it."""
        before = self.score()
        for _ in range(self.frame_skip * self.num_steps):
            if self.game_over():
                break
            self.game.step(1000.0 / self.fps)
            self.frame_count += 1
        self.last_action, self.action = self.action, [action]
        return self.score() - before


ple = games
__all__ = ["PLE", "games"]
__getattr__ = others(__name__)
