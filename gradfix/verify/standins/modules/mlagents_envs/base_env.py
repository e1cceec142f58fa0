"""What agents see and do."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy

from ...inert import others


class ActionTuple:
    """Actions of all agents, of either kind."""

    def __init__(self, continuous: Any = None, discrete: Any = None) -> None:
        self.continuous, self.discrete = continuous, discrete

    def add_continuous(self, values: Any) -> None:
        """Those that are numbers."""
        self.continuous = values

    def add_discrete(self, values: Any) -> None:
        """Those that are numbered."""
        self.discrete = values


class Steps:
    """What some agents see; those that decide, or those whose episode is over."""

    def __init__(self, states: Any, rewards: Any, agents: list[int]) -> None:
        self.obs = [states]
        self.reward = rewards
        self.agent_id = numpy.array(agents, dtype=numpy.int32)
        self.agent_id_to_index = {agent: place for place, agent in enumerate(agents)}
        self.group_id = numpy.zeros(len(agents), dtype=numpy.int32)
        self.group_reward = numpy.zeros(len(agents), dtype=numpy.float32)
        self.interrupted = numpy.zeros(len(agents), dtype=bool)
        self.action_mask = None

    def __len__(self) -> int:
        return len(self.agent_id)

    def __iter__(self) -> Iterator[int]:
        return iter(self.agent_id.tolist())

    def __getitem__(self, agent: int) -> Any:
        place = self.agent_id_to_index[agent]
        return SimpleNamespace(
            obs=[self.obs[0][place]],
            reward=self.reward[place],
            agent_id=agent,
            action_mask=None,
            interrupted=False,
        )


DecisionSteps = TerminalSteps = Steps
__getattr__ = others(__name__)
