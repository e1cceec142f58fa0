"""envpool: games in batches, four grey pictures of 84 x 84 each."""

from __future__ import annotations

from typing import Any

from ..environments import Made, VectorEnv
from ..environments import make as make_one
from ..spaces import Box


def make(task_id: str, env_type: str = "gym", num_envs: int = 1, **kwargs: Any) -> Any:
    """Several games of one kind."""
    together = VectorEnv([lambda: _stacked(task_id) for _ in range(num_envs)])
    together.observation_space = together.single_observation_space
    together.action_space = together.single_action_space
    together.named_infos = True
    return together


def make_gym(task_id: str, **kwargs: Any) -> Any:
    """Several games of one kind."""
    return make(task_id, "gym", **kwargs)


class _Listed(Made):
    def _step(self, action: Any) -> Any:
        observation, reward, ended, cut, info = super()._step(action)
        return (
            observation,
            reward,
            ended,
            cut,
            {**info, "elapsed_step": self.elapsed, "reward": reward, "terminated": ended},
        )


def _stacked(name: str) -> Any:
    game = make_one(name)
    return _Listed(name, Box(0, 255, (4, 84, 84), "uint8"), game.action_space)
