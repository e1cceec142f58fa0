"""unityagents: worlds of several agents, whose names tell their spaces."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from .. import context
from ..environments import EPISODE
from ..spaces import array

WORLDS = {
    # Values of a state, of an action (none: that many numbered ones), and agents.
    "banana": (37, 4, True, 1),
    "reacher": (33, 4, False, 20),
    "tennis": (24, 2, False, 2),
    "crawler": (129, 20, False, 12),
    "soccer": (336, 6, True, 4),
}


class UnityEnvironment:
    """A world that is found by the name of its file."""

    def __init__(self, file_name: Any = None, *args: Any, **kwargs: Any) -> None:
        name = str(file_name).lower()
        known = next((one for one in WORLDS if one in name), None)
        if known is None:
            said = (
                "the environment "
                + str(file_name)
                + " is not here, its spaces are unknown, and they are needed"
            )
            context.run().stop(said, final=True)
        self.states, self.actions, numbered, self.count = WORLDS[known]
        if known == "reacher" and ("one" in name or "1" in name):
            self.count = 1
        self.brain_names = [known.capitalize() + "Brain"]
        self.external_brain_names = self.brain_names
        brain = SimpleNamespace(
            brain_name=self.brain_names[0],
            vector_action_space_size=self.actions,
            vector_action_space_type="discrete" if numbered else "continuous",
            vector_observation_space_size=self.states,
            vector_observation_space_type="continuous",
            num_stacked_vector_observations=1,
            number_visual_observations=0,
        )
        self.brains = {self.brain_names[0]: brain}
        self.number_brains = self.number_external_brains = 1
        self.academy_name = "Academy"
        self.global_done = False
        self.elapsed = 0
        self.generator = context.run().generator("unity", known)
        told = f"random states ({self.states},), episodes of {EPISODE} steps"
        context.run().used("environment " + known.capitalize(), told)

    def _told(self, over: bool) -> dict[str, Any]:
        rewards = torch.rand(self.count, generator=self.generator) * 2 - 1
        told = SimpleNamespace(
            vector_observations=array(torch.rand(self.count, self.states, generator=self.generator).double()),
            visual_observations=[],
            rewards=rewards.tolist(),
            local_done=[over] * self.count,
            max_reached=[over] * self.count,
            agents=list(range(self.count)),
            memories=None,
        )
        return {self.brain_names[0]: told}

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """First states."""
        self.elapsed = 0
        return self._told(False)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """The next states."""
        self.elapsed += 1
        return self._told(self.elapsed >= EPISODE)

    def close(self) -> None:
        """Nothing is open."""
