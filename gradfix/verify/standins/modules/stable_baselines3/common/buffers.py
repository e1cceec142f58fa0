"""A replay memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy
import torch

from ....context import run


class ReplayBufferSamples(NamedTuple):
    """Transitions as tensors."""

    observations: torch.Tensor
    actions: torch.Tensor
    next_observations: torch.Tensor
    dones: torch.Tensor
    rewards: torch.Tensor


class ReplayBuffer:
    """Keeps transitions of several environments and draws from them with numpy's generator."""

    def __init__(
        self, buffer_size: int, observation_space: Any, action_space: Any, *args: Any, **kwargs: Any
    ) -> None:
        self.n_envs = kwargs.get("n_envs", 1)
        self.buffer_size = max(buffer_size // self.n_envs, 1)
        self.space, self.action_space = observation_space, action_space
        self.rows: list[tuple[Any, ...]] = []
        self.device = "cpu"

    def size(self) -> int:
        """How many there are."""
        return len(self.rows)

    @property
    def full(self) -> bool:
        """Whether the oldest are being replaced."""
        return bool(len(self.rows) >= self.buffer_size)

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any = None) -> None:
        """Keep one transition of each environment."""
        parts = [numpy.array(value) for value in (obs, action, next_obs, done, reward)]
        for index in range(self.n_envs):
            self.rows.append(tuple(part.reshape(self.n_envs, -1)[index].copy() for part in parts))
        del self.rows[: max(0, len(self.rows) - self.buffer_size * self.n_envs)]

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """Transitions drawn at random."""
        chosen = [self.rows[index] for index in numpy.random.randint(0, len(self.rows), size=batch_size)]
        columns = [torch.as_tensor(numpy.stack(column)) for column in zip(*chosen)]
        shape = (batch_size, *self.space.shape)
        observations, following = columns[0].reshape(shape), columns[2].reshape(shape)
        action, done, reward = (
            columns[1],
            columns[3].float().reshape(-1, 1),
            columns[4].float().reshape(-1, 1),
        )
        run().used("stable_baselines3.common.buffers.ReplayBuffer", "a memory of its kind")
        return ReplayBufferSamples(observations, action, following, done, reward)


class RolloutBuffer(ReplayBuffer):
    """The same memory under another name."""
