"""What agents experience, and a memory of it."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy

from ...environments import inner_reset, inner_step
from ...inert import others

__getattr__ = others(__name__)


class Experience(NamedTuple):
    """A step."""

    state: Any
    action: Any
    reward: Any
    done: Any


class ExperienceFirstLast(NamedTuple):
    """Several steps as one: where they began and ended, and what they gave together."""

    state: Any
    action: Any
    reward: Any
    last_state: Any


class ExperienceSource:
    """As many steps in a row as are asked for, of one environment after the other."""

    def __init__(
        self, env: Any, agent: Any, steps_count: int = 2, steps_delta: int = 1, vectorized: bool = False
    ) -> None:
        if vectorized:
            raise NotImplementedError("environments that step together have no stand-in here")
        self.pool = list(env) if isinstance(env, (list, tuple)) else [env]
        self.agent, self.steps_count, self.steps_delta = agent, steps_count, steps_delta
        self.total_rewards: list[Any] = []
        self.total_steps: list[int] = []

    def __iter__(self) -> Iterator[Any]:
        count = len(self.pool)
        states = [inner_reset(env) for env in self.pool]
        own = [self.agent.initial_state() for _ in self.pool]
        pasts: list[Any] = [collections.deque(maxlen=self.steps_count) for _ in self.pool]
        rewards, steps, turn = [0.0] * count, [0] * count, 0
        while True:
            actions, own = self.agent(states, own)
            own = list(own)
            for at, (env, past) in enumerate(zip(self.pool, pasts)):
                state, reward, ended, cut, _ = inner_step(env, actions[at])
                done = bool(ended or cut)
                past.append(Experience(states[at], actions[at], reward, done))
                rewards[at] += reward
                steps[at] += 1
                states[at] = state
                if len(past) == self.steps_count and turn % self.steps_delta == 0:
                    yield tuple(past)
                if done:
                    if 0 < len(past) < self.steps_count:
                        yield tuple(past)
                    while len(past) > 1:
                        past.popleft()
                        yield tuple(past)
                    past.clear()
                    self.total_rewards.append(rewards[at])
                    self.total_steps.append(steps[at])
                    rewards[at], steps[at] = 0.0, 0
                    states[at], own[at] = inner_reset(env), self.agent.initial_state()
            turn += 1

    def pop_total_rewards(self) -> list[Any]:
        """What the episodes gave that are over since it was last asked for."""
        return [reward for reward, _ in self.pop_rewards_steps()]

    def pop_rewards_steps(self) -> list[Any]:
        """The same with their lengths."""
        found = list(zip(self.total_rewards, self.total_steps))
        self.total_rewards, self.total_steps = [], []
        return found


class ExperienceSourceFirstLast(ExperienceSource):
    """The same, several steps as one."""

    def __init__(
        self, env: Any, agent: Any, gamma: float, steps_count: int = 1, steps_delta: int = 1, **more: Any
    ) -> None:
        super().__init__(env, agent, steps_count + 1, steps_delta, **more)
        self.gamma, self.steps = gamma, steps_count

    def __iter__(self) -> Iterator[Any]:
        for past in super().__iter__():
            whole = past[-1].done and len(past) <= self.steps
            total = 0.0
            for one in reversed(past if whole else past[:-1]):
                total = total * self.gamma + one.reward
            yield ExperienceFirstLast(past[0].state, past[0].action, total, None if whole else past[-1].state)


class ExperienceSourceRollouts(ExperienceSource):
    """As many steps at once of all environments: states, what they give from there on, actions, values.

    The agent's own states are the values of what it has seen.
    """

    def __init__(self, env: Any, agent: Any, gamma: float, steps_count: int = 5) -> None:
        super().__init__(env, agent, steps_count)
        self.gamma = gamma

    def __iter__(self) -> Iterator[Any]:
        states: list[Any] = [numpy.array(inner_reset(env)) for env in self.pool]
        totals, lengths = [0.0] * len(self.pool), [0] * len(self.pool)
        values: Any = None
        taken: list[Any] = []
        while True:
            actions, values = self.agent(states, values)
            values = list(numpy.reshape(values, -1))
            if len(taken) == self.steps_count:
                seen, chosen, judged, gained, over = (numpy.stack(one, 1) for one in zip(*taken))
                returns, following = numpy.zeros(gained.shape, numpy.float32), numpy.array(values)
                for at in reversed(range(self.steps_count)):
                    following = gained[:, at] + self.gamma * following * ~over[:, at]
                    returns[:, at] = following
                yield seen.reshape(-1, *seen.shape[2:]), returns.ravel(), chosen.ravel(), judged.ravel()
                taken = []
            rewards, dones, following_states = [], [], []
            for at, env in enumerate(self.pool):
                state, reward, ended, cut, _ = inner_step(env, actions[at])
                totals[at] += reward
                lengths[at] += 1
                if ended or cut:
                    state = inner_reset(env)
                    self.total_rewards.append(totals[at])
                    self.total_steps.append(lengths[at])
                    totals[at], lengths[at] = 0.0, 0
                following_states.append(numpy.array(state))
                rewards.append(reward)
                dones.append(bool(ended or cut))
            made = numpy.array(values, numpy.float32), numpy.array(rewards, numpy.float32), numpy.array(dones)
            taken.append((states, actions, *made))
            states = following_states


class ExperienceReplayBuffer:
    """The last experiences; it draws with numpy's generator, as the real one does."""

    def __init__(self, experience_source: Any, buffer_size: int) -> None:
        self.experience_source_iter = None if experience_source is None else iter(experience_source)
        self.capacity = buffer_size
        self.buffer: list[Any] = []
        self.pos = 0

    def __len__(self) -> int:
        return len(self.buffer)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.buffer)

    def sample(self, batch_size: int) -> list[Any]:
        """Some of them."""
        if len(self.buffer) <= batch_size:
            return self.buffer
        return [self.buffer[at] for at in numpy.random.choice(len(self.buffer), batch_size, replace=True)]

    def _add(self, sample: Any) -> None:
        if len(self.buffer) < self.capacity:
            self.buffer.append(sample)
        else:
            self.buffer[self.pos] = sample
        self.pos = (self.pos + 1) % self.capacity

    def populate(self, samples: int) -> None:
        """So many more."""
        for _ in range(samples):
            self._add(next(self.experience_source_iter))  # type: ignore[arg-type]
