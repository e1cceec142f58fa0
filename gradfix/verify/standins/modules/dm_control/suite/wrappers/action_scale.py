"""Actions between other bounds."""

from __future__ import annotations

from typing import Any

import numpy

from ....dm_env import Environment
from ....dm_env.specs import BoundedArray


class Wrapper(Environment):
    """The same environment for actions between ``minimum`` and ``maximum``."""

    def __init__(self, env: Any, minimum: Any, maximum: Any) -> None:
        self._env = env
        own = env.action_spec()
        low, high = (numpy.broadcast_to(one, own.shape) for one in (minimum, maximum))
        self._scale = (own.maximum - own.minimum) / (high - low)
        self._low, self._own = low, own.minimum
        self._spec = BoundedArray(own.shape, own.dtype, low, high, own.name)

    def action_spec(self) -> Any:
        """Between these bounds."""
        return self._spec

    def reset(self) -> Any:
        """The first step."""
        return self._env.reset()

    def step(self, action: Any) -> Any:
        """The next step."""
        return self._env.step(self._own + self._scale * (action - self._low))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)
