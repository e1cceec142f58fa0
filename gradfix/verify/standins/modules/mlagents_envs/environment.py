"""Worlds that are found by the names of their files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy

from ...inert import others
from .. import unityagents
from .base_env import Steps


class UnityEnvironment(unityagents.UnityEnvironment):
    """The same worlds as newer versions of the library give them."""

    def __init__(self, file_name: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(file_name)
        self.name = self.brain_names[0].replace("Brain", "") + "?team=0"
        brain = next(iter(self.brains.values()))
        numbered = brain.vector_action_space_type == "discrete"
        actions = SimpleNamespace(
            continuous_size=0 if numbered else self.actions,
            discrete_size=int(numbered),
            discrete_branches=(self.actions,) if numbered else (),
            is_continuous=lambda: not numbered,
            is_discrete=lambda: numbered,
            random_action=self._random,
            empty_action=self._random,
        )
        seen = SimpleNamespace(shape=(self.states,), name="VectorSensor", dimension_property=(1,))
        spec = SimpleNamespace(
            observation_specs=[seen],
            observation_shapes=[(self.states,)],
            action_spec=actions,
            action_shape=(self.actions,) if numbered else self.actions,
            action_size=1 if numbered else self.actions,
            is_action_continuous=lambda: not numbered,
            is_action_discrete=lambda: numbered,
        )
        self.behavior_specs = {self.name: spec}

    def _random(self, count: int) -> Any:
        from .base_env import ActionTuple

        return ActionTuple(numpy.zeros((count, self.actions), numpy.float32))

    def get_behavior_names(self) -> list[str]:
        """The one kind of agents."""
        return [self.name]

    def get_behavior_spec(self, name: str) -> Any:
        """Its spaces."""
        return self.behavior_specs[name]

    def reset(self, *args: Any, **kwargs: Any) -> None:
        """Begin an episode."""
        self.told = super().reset()[self.brain_names[0]]
        self.over = False

    def step(self, *args: Any, **kwargs: Any) -> None:
        """Go on; a world whose episode is over begins the next one."""
        if self.over:
            self.reset()
            return
        self.told = super().step()[self.brain_names[0]]
        self.over = bool(self.told.local_done[0])

    def set_actions(self, *args: Any, **kwargs: Any) -> None:
        """They change nothing."""

    set_action_for_agent = set_actions

    def get_steps(self, name: Any = None) -> tuple[Steps, Steps]:
        """What the agents see that decide, and those whose episode is over."""
        states = numpy.asarray(self.told.vector_observations, dtype=numpy.float32)
        rewards, agents = numpy.asarray(self.told.rewards, dtype=numpy.float32), self.told.agents
        ended = Steps(states, rewards, agents) if self.over else Steps(states[:0], rewards[:0], [])
        return Steps(states, rewards, agents), ended


__getattr__ = others(__name__)
