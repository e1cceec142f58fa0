"""Wrappers of games; those that change only what is random here anyway pass everything on."""

from __future__ import annotations

from typing import Any

from ....environments import AtariPreprocessing, ObservationWrapper, Passing, shaped
from ....spaces import Box

NoopResetEnv = MaxAndSkipEnv = EpisodicLifeEnv = FireResetEnv = ClipRewardEnv = Passing
AtariWrapper = AtariPreprocessing


class WarpFrame(ObservationWrapper):
    """Grey pictures of 84 x 84 x 1."""

    def __init__(self, env: Any, width: int = 84, height: int = 84) -> None:
        super().__init__(env)
        self.observation_space = Box(0, 255, (height, width, 1), "uint8")

    def observation(self, observation: Any) -> Any:
        """The grey picture."""
        return shaped(self, observation)
