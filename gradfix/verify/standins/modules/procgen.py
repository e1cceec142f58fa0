"""procgen: games in batches, pictures of 64 x 64 under the name ``rgb``."""

from __future__ import annotations

from typing import Any

import torch

from ..context import run
from ..environments import EPISODE, Made
from ..spaces import Box, Dict, Discrete, array


class ProcgenEnv(Made):
    """Several games of one kind."""

    def __init__(self, num_envs: int, env_name: str, **kwargs: Any) -> None:
        picture = Box(0, 255, (64, 64, 3), "uint8")
        super().__init__(env_name, Dict({"rgb": picture}), Discrete(15))
        self.num_envs = num_envs
        self.is_vector_env = True
        run().used("environment " + env_name, f"random pictures (64, 64, 3), episodes of {EPISODE} steps")

    def observe(self) -> Any:
        """A picture of each game."""
        drawn = torch.randint(0, 256, (self.num_envs, 64, 64, 3), generator=self.generator)
        return {"rgb": array(drawn.to(torch.uint8))}

    def _step(self, action: Any) -> Any:
        self.elapsed += 1
        reward = array(torch.rand(self.num_envs, generator=self.generator))
        over = array(torch.full((self.num_envs,), self.elapsed % EPISODE == 0))
        return self.observe(), reward, over, over & False, [{} for _ in range(self.num_envs)]
