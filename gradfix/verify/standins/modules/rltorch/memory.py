"""What an agent has seen: states, actions, rewards, next states, and whether it was over."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

NAMES = ("states", "actions", "rewards", "next_states", "dones")


class Memory:
    """The last so many steps, drawn from evenly by numpy's generator."""

    def __init__(self, capacity: float, state_shape: Any, action_shape: Any, device: Any) -> None:
        self.capacity, self.device = int(capacity), device
        self.state_shape, self.action_shape = state_shape, action_shape
        self.is_image = len(state_shape) == 3
        self.state_type = np.uint8 if self.is_image else np.float32
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self._n = self._p = 0
        for name in NAMES:
            seen = "state" in name
            shape = self.state_shape if seen else self.action_shape if name == "actions" else (1,)
            kind = self.state_type if seen else np.float32
            setattr(self, name, np.empty((self.capacity, *shape), dtype=kind))

    def append(
        self, state: Any, action: Any, reward: Any, next_state: Any, done: Any, episode_done: Any = None
    ) -> None:
        """Keep a step."""
        self._append(state, action, reward, next_state, done)

    def _append(self, *step: Any) -> None:
        for name, value in zip(NAMES, step):
            getattr(self, name)[self._p] = np.array(value)
        self._n = min(self._n + 1, self.capacity)
        self._p = (self._p + 1) % self.capacity

    def sample(self, batch_size: int) -> Any:
        """A batch of steps."""
        return self._sample(np.random.randint(low=0, high=self._n, size=batch_size))

    def _sample(self, indices: Any) -> tuple[torch.Tensor, ...]:
        found = []
        for name in NAMES:
            held = torch.from_numpy(getattr(self, name)[indices]).to(self.device).float()
            found.append(held / 255.0 if self.is_image and "state" in name else held)
        return tuple(found)

    def _held(self) -> list[str]:
        return list(NAMES)

    def get(self) -> tuple[Any, ...]:
        """All steps."""
        return tuple(getattr(self, name)[: self._n] for name in self._held())

    def load(self, batch: Any) -> None:
        """Keep steps that another memory has."""
        count = len(batch[0])
        places = (self._p + np.arange(count)) % self.capacity
        for name, values in zip(self._held(), batch):
            getattr(self, name)[places] = values
        self._n = min(self._n + count, self.capacity)
        self._p = (self._p + count) % self.capacity

    def __len__(self) -> int:
        return self._n


class MultiStepBuff:
    """The steps whose rewards are added up."""

    def __init__(self, maxlen: int = 3) -> None:
        self.maxlen = int(maxlen)
        self.steps: list[Any] = []

    def append(self, state: Any, action: Any, reward: Any) -> None:
        """Wait for what comes of a step."""
        self.steps = [*self.steps, (state, action, reward)][-self.maxlen :]

    def get(self, gamma: float = 0.99) -> Any:
        """The first step, with all rewards since."""
        total = np.sum([step[2] * gamma**late for late, step in enumerate(self.steps)])
        state, action, _ = self.steps.pop(0)
        return state, action, total

    def reset(self) -> None:
        """Forget all."""
        self.steps = []

    def __len__(self) -> int:
        return len(self.steps)


class MultiStepMemory(Memory):
    """A memory whose rewards are those of several steps."""

    def __init__(
        self,
        capacity: float,
        state_shape: Any,
        action_shape: Any,
        device: Any,
        gamma: float = 0.99,
        multi_step: int = 3,
    ) -> None:
        super().__init__(capacity, state_shape, action_shape, device)
        self.gamma, self.multi_step = gamma, int(multi_step)
        self.buff = MultiStepBuff(self.multi_step)

    def append(
        self, state: Any, action: Any, reward: Any, next_state: Any, done: Any, episode_done: Any = False
    ) -> None:
        """Keep a step, once it is known what came of it."""
        self._wait((state, action, reward), (next_state, done), episode_done)

    def _wait(self, step: Any, after: Any, episode_done: Any) -> None:
        if self.multi_step != 1:
            self.buff.append(*step)
            if len(self.buff) == self.multi_step:
                self._keep(*self.buff.get(self.gamma), *after)
            if episode_done or after[1]:
                self.buff.reset()
        else:
            self._keep(*step, *after)

    def _keep(self, *step: Any) -> None:
        self._append(*step)


class PrioritizedMemory(MultiStepMemory):
    """A memory that is drawn from, by torch's generator, as often as errors were large."""

    def __init__(
        self,
        capacity: float,
        state_shape: Any,
        action_shape: Any,
        device: Any,
        gamma: float = 0.99,
        multi_step: int = 3,
        alpha: float = 0.6,
        beta: float = 0.4,
        beta_annealing: float = 0.001,
        epsilon: float = 1e-4,
    ) -> None:
        super().__init__(capacity, state_shape, action_shape, device, gamma, multi_step)
        self.alpha, self.beta, self.beta_annealing, self.epsilon = alpha, beta, beta_annealing, epsilon

    def reset(self) -> None:
        """Forget all."""
        super().reset()
        self.priorities = np.empty((self.capacity, 1), dtype=np.float32)

    def append(  # type: ignore[override]
        self,
        state: Any,
        action: Any,
        reward: Any,
        next_state: Any,
        done: Any,
        error: Any,
        episode_done: Any = False,
    ) -> None:
        """Keep a step, once it is known what came of it."""
        self._wait((state, action, reward), (next_state, done, error), episode_done)

    def _held(self) -> list[str]:
        return [*NAMES, "priorities"]

    def _keep(self, *step: Any) -> None:
        *kept, error = step
        self.priorities[self._p] = self.calc_priority(error)
        self._append(*kept)

    def calc_priority(self, error: Any) -> Any:
        """How often what had an error is drawn."""
        return (np.abs(error) + self.epsilon) ** self.alpha

    def update_priority(self, indices: Any, errors: Any) -> None:
        """Draw steps as their errors are now."""
        self.priorities[indices] = np.reshape(self.calc_priority(errors), (-1, 1))

    def sample(self, batch_size: int) -> Any:
        """A batch of steps, their places, and by how much less each counts."""
        self.beta = min(1.0 - self.epsilon, self.beta + self.beta_annealing)
        held = self.priorities[: self._n]
        weights = torch.as_tensor(held[:, 0], dtype=torch.double)
        indices = torch.multinomial(weights, batch_size, replacement=True).tolist()
        shares = (self._n * held[indices] / held.sum()) ** -self.beta
        return self._sample(indices), indices, torch.FloatTensor(shares / shares.max()).to(self.device)


DummyMemory, DummyMultiStepMemory, DummyPrioritizedMemory = Memory, MultiStepMemory, PrioritizedMemory
base = multi_step = prioritized = sys.modules[__name__]
