"""What is seen in the place of what is measured, or beside it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ....dm_env import Environment
from ....dm_env.specs import Array


class Wrapper(Environment):
    """The same environment with a picture, height x width x 3 bytes, among what is observed."""

    def __init__(
        self,
        env: Any,
        pixels_only: bool = True,
        render_kwargs: Any = None,
        observation_key: str = "pixels",
    ) -> None:
        self._env, self._key, self._only = env, observation_key, pixels_only
        self._drawn = render_kwargs or {}

    def _with(self, observed: Any, shown: Any) -> Any:
        found = OrderedDict() if self._only else OrderedDict(observed)
        found[self._key] = shown
        return found

    def _shown(self) -> Any:
        return self._env.physics.render(**self._drawn)

    def observation_spec(self) -> Any:
        """The picture's size, and the others'."""
        shown = self._shown()
        return self._with(self._env.observation_spec(), Array(shown.shape, shown.dtype, self._key))

    def reset(self) -> Any:
        """The first step."""
        step = self._env.reset()
        return step._replace(observation=self._with(step.observation, self._shown()))

    def step(self, action: Any) -> Any:
        """The next step."""
        step = self._env.step(action)
        return step._replace(observation=self._with(step.observation, self._shown()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)
