"""envpool: environments in batches; games give four grey pictures of 84 x 84, or what they are told."""

from __future__ import annotations

from typing import Any

from ..environments import AtariEnv, Made, VectorEnv
from ..environments import make as make_one
from ..spaces import Box


def make(task_id: str, env_type: str = "gym", num_envs: int = 1, **kwargs: Any) -> Any:
    """Several games of one kind."""
    together = VectorEnv([lambda: _single(task_id, kwargs) for _ in range(num_envs)])
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


def _single(name: str, settings: dict[str, Any]) -> Any:
    game = make_one(name)
    if not isinstance(game, AtariEnv):
        return _Listed(name, game.observation_space, game.action_space)
    sides = (settings.get("img_height", 84), settings.get("img_width", 84))
    shape = (settings.get("stack_num", 4) * (1 if settings.get("gray_scale", True) else 3), *sides)
    return _Listed(name, Box(0, 255, shape, "uint8"), game.action_space)
