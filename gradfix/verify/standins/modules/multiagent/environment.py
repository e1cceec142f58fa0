"""An environment in which several agents act at once: what each of them sees, earns and does is in a list."""

from __future__ import annotations

from typing import Any

import torch

from ...context import run
from ...environments import INF, Env
from ...spaces import Box, Discrete, MultiDiscrete
from .scenarios import World

SPEAKING = {50: [5, 10]}
"""Actions of who moves and speaks at once, which are two here."""


class MultiAgentEnv(Env):
    """A world in steps; it has no end, as the real one has none."""

    def __init__(self, world: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(world, World):
            run().stop("multiagent is missing and its values are needed")
        self.world, self.agents, self.n = world, world.policy_agents, len(world.policy_agents)
        self.discrete_action_space, self.discrete_action_input, self.shared_reward = True, False, False
        self.observation_space = [Box(-INF, INF, (seen,)) for seen, _ in world.spaces]
        self.action_space = [
            MultiDiscrete(SPEAKING[count]) if count in SPEAKING else Discrete(count)
            for _, count in world.spaces
        ]
        self.generator = run().generator("multiagent", world.name)
        run().used("environment " + world.name, f"random states of {self.n} agents")

    def observe(self) -> list[Any]:
        """What the agents see."""
        return [space.draw(self.generator) for space in self.observation_space]

    def reset(self, *args: Any, **kwargs: Any) -> list[Any]:
        """First states."""
        return self.observe()

    def step(self, actions: Any) -> Any:
        """The next states, rewards between -1 and 1, and who is done: nobody."""
        rewards = (torch.rand(self.n, generator=self.generator) * 2 - 1).tolist()
        return self.observe(), rewards, [False] * self.n, {"n": [{} for _ in self.agents]}
