"""What happens in a world, by its name."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from ... import callers
from ...context import run
from ..pettingzoo.worlds import MPE

AGENTS = 3
"""Those of a world that may have any number."""
USUAL = "simple_spread"


class World(SimpleNamespace):
    """Who is in a world."""


class Scenario:
    """One of the known worlds."""

    def __init__(self, name: str) -> None:
        self.name = name

    def make_world(self, *args: Any, **kwargs: Any) -> World:
        """The world and who is in it."""
        known = MPE[self.name](AGENTS)
        agents = [SimpleNamespace(name=one.replace("_", " "), silent=True, movable=True) for one in known]
        if any("adversary" in one for one in known):
            for agent in agents:
                agent.adversary = "adversary" in agent.name
        landmarks = [SimpleNamespace(name=f"landmark {one}", movable=False) for one in range(AGENTS)]
        return World(
            name=self.name,
            agents=agents,
            policy_agents=agents,
            scripted_agents=[],
            landmarks=landmarks,
            entities=[*agents, *landmarks],
            spaces=list(known.values()),
        )

    def reset_world(self, *args: Any) -> None:
        """The states are random anyway."""

    reward = observation = benchmark_data = reset_world


def load(name: str) -> Any:
    """The module of a world; of one that neither this library nor the project has, that of the usual one."""
    found = os.path.splitext(os.path.basename(str(name)))[0]
    if found not in MPE:
        if any(os.path.basename(one) == found + ".py" for one in callers.project_files(run())):
            raise FileNotFoundError(2, "No such file or directory", str(name))
        run().used("world " + found, USUAL)
        found = USUAL
    return SimpleNamespace(Scenario=lambda: Scenario(found))
