"""Wrappers of games; those that change only what is random here anyway pass everything on."""

from __future__ import annotations

import collections
from typing import Any

import numpy

from ....environments import AtariPreprocessing, ObservationWrapper, Passing, make, shaped
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


class ScaledFloatFrame(ObservationWrapper):
    """Numbers from 0 to 1."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = Box(0, 1, env.observation_space.shape, "float32")

    def observation(self, observation: Any) -> Any:
        """The picture in numbers from 0 to 1."""
        return numpy.asarray(observation).astype("float32") / 255


class LazyFrames:
    """Pictures that become one array when it is asked for."""

    def __init__(self, frames: Any) -> None:
        self._frames = frames

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        whole = numpy.concatenate(self._frames, axis=-1)
        return whole if dtype is None else whole.astype(dtype)

    def __len__(self) -> int:
        return len(self.__array__())

    def __getitem__(self, index: Any) -> Any:
        return self.__array__()[index]

    @property
    def shape(self) -> Any:
        """Of the one array."""
        return self.__array__().shape


class FrameStack(ObservationWrapper):
    """The last ``k`` pictures, their channels one after the other."""

    def __init__(self, env: Any, k: int) -> None:
        super().__init__(env)
        self.k = k
        self.frames: Any = collections.deque(maxlen=k)
        *sides, channels = env.observation_space.shape
        self.observation_space = Box(0, 255, (*sides, channels * k), env.observation_space.dtype)

    def _reset(self) -> Any:
        self.frames.clear()
        return super()._reset()

    def observation(self, observation: Any) -> Any:
        """As many as there are to be, the first repeated."""
        self.frames.extend([observation] * (1 if self.frames else self.k))
        return self._get_ob()

    def _get_ob(self) -> Any:
        return LazyFrames(list(self.frames))


def make_atari(env_id: Any, *args: Any, **kwargs: Any) -> Any:
    """A game."""
    return make(env_id)


def wrap_deepmind(
    env: Any,
    episode_life: bool = True,
    clip_rewards: bool = True,
    frame_stack: bool = False,
    scale: bool = False,
) -> Any:
    """A game as it is mostly shown to networks."""
    env = WarpFrame(env)
    if scale:
        env = ScaledFloatFrame(env)
    return FrameStack(env, 4) if frame_stack else env
