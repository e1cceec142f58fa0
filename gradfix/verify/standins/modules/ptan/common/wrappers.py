"""Wrappers of games."""

from __future__ import annotations

from typing import Any

import numpy

from ....environments import ObservationWrapper
from ....inert import others
from ....spaces import Box
from ...stable_baselines3.common.atari_wrappers import (
    ClipRewardEnv,
    EpisodicLifeEnv,
    FireResetEnv,
    FrameStack,
    LazyFrames,
    MaxAndSkipEnv,
    NoopResetEnv,
    WarpFrame,
)

__all__ = [
    "ClipRewardEnv",
    "EpisodicLifeEnv",
    "FireResetEnv",
    "FrameStack",
    "ImageToPyTorch",
    "LazyFrames",
    "MaxAndSkipEnv",
    "NoopResetEnv",
    "WarpFrame",
    "wrap_dqn",
]
__getattr__ = others(__name__)
ClippedRewardsWrapper = ClipRewardEnv
ProcessFrame84 = WarpFrame


class ImageToPyTorch(ObservationWrapper):
    """Channels first."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        height, width, channels = env.observation_space.shape
        self.observation_space = Box(0, 255, (channels, height, width), env.observation_space.dtype)

    def observation(self, observation: Any) -> Any:
        """The same picture."""
        return numpy.moveaxis(numpy.asarray(observation), -1, 0)


def wrap_dqn(
    env: Any, stack_frames: int = 4, episodic_life: bool = True, reward_clipping: bool = True
) -> Any:
    """A game as it is mostly shown to networks: the last pictures, grey, as channels."""
    return ImageToPyTorch(FrameStack(WarpFrame(env), stack_frames))
