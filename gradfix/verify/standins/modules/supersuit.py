"""supersuit: what changes the worlds of several agents, and makes many environments of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy

from ..environments import answered, stepped
from ..inert import others
from ..spaces import Box, Space
from .pettingzoo.worlds import Parallel

SAME = (
    "possible_agents agents max_num_agents num_agents metadata render_mode action_spaces unwrapped generator"
).split()
"""What a world has in common with what is changed of it."""


class Changed(Parallel):
    """A world of which the agents see something else."""

    def __init__(self, env: Any, change: Callable[[str, Any], Any] = lambda agent, seen: seen) -> None:
        for name in SAME:
            setattr(self, name, getattr(env, name))
        self.env, self.change = env, change
        spaces = {agent: self.space(agent) for agent in self.possible_agents}
        self.spaces = {agent: (space, env.action_space(agent)) for agent, space in spaces.items()}
        self.observation_spaces = spaces

    def space(self, agent: str) -> Space:
        """What an agent sees."""
        had: Any = self.env.observation_space(agent)
        low, high = (self.change(agent, numpy.asarray(one)) for one in (had.low, had.high))
        return Box(low, high, low.shape, low.dtype)

    def seen(self, states: dict[str, Any]) -> dict[str, Any]:
        """What the agents see of these states."""
        return {agent: self.change(agent, state) for agent, state in states.items()}

    def observe(self, agent: str) -> Any:
        return self.change(agent, self.env.observe(agent))

    def begun(self) -> dict[str, Any]:
        states = self.env.begun()
        self.agents = list(self.env.agents)
        return self.seen(states)

    def following(self, actions: Any) -> tuple[Any, ...]:
        states, *rest = self.env.following(actions)
        self.agents = list(self.env.agents)
        return (self.seen(states), *rest)

    def again(self) -> Any:
        """Another one like it."""
        made = copy.copy(self)
        made.env = self.env.again() if isinstance(self.env, Changed) else copy.copy(self.env)
        return made


class _Skipping(Changed):
    def __init__(self, env: Any, count: int) -> None:
        super().__init__(env)
        self.count = count

    def following(self, actions: Any) -> tuple[Any, ...]:
        totals = dict.fromkeys(self.agents, 0.0)
        for _ in range(self.count):
            states, rewards, *rest = super().following(actions)
            totals = {agent: totals[agent] + reward for agent, reward in rewards.items()}
            if not self.agents:
                break
        return (states, totals, *rest)


class _Rewarding(Changed):
    def __init__(self, env: Any, change: Callable[[float], float]) -> None:
        super().__init__(env)
        self.rewarded = change

    def following(self, actions: Any) -> tuple[Any, ...]:
        states, rewards, *rest = super().following(actions)
        return (states, {agent: self.rewarded(one) for agent, one in rewards.items()}, *rest)


class _Stacked(Changed):
    """The last states side by side, zeros before the first; or the largest values of them."""

    def __init__(self, env: Any, count: int, join: Callable[[list[Any]], Any]) -> None:
        self.count, self.join = count, join
        self.past: dict[str, list[Any]] = {}
        super().__init__(env)

    def space(self, agent: str) -> Space:
        had: Any = self.env.observation_space(agent)
        low, high = (self.join([numpy.asarray(one)] * self.count) for one in (had.low, had.high))
        return Box(low, high, low.shape, low.dtype)

    def seen(self, states: dict[str, Any]) -> dict[str, Any]:
        for agent, state in states.items():
            past = self.past.get(agent) or [numpy.zeros_like(state)] * self.count
            self.past[agent] = [*past[1:], state]
        return {agent: self.join(self.past[agent]) for agent in states}

    def begun(self) -> dict[str, Any]:
        self.past = {}
        return super().begun()


def side_by_side(states: list[Any]) -> Any:
    """Pictures along their channels, rows one behind the other."""
    return numpy.stack(states, -1) if states[0].ndim == 2 else numpy.concatenate(states, -1)


def frame_stack_v1(env: Any, stack_size: int = 4, *args: Any, **kwargs: Any) -> Any:
    """The last states side by side."""
    return _Stacked(env, stack_size, side_by_side)


def max_observation_v0(env: Any, memory: int) -> Any:
    """The largest values of the last states."""
    return _Stacked(env, memory, lambda states: numpy.stack(states).max(0))


def frame_skip_v0(env: Any, num_frames: Any, *args: Any) -> Any:
    """Each action several times; of two numbers the first."""
    return _Skipping(env, num_frames if isinstance(num_frames, int) else num_frames[0])


def clip_reward_v0(env: Any, lower_bound: float = -1, upper_bound: float = 1) -> Any:
    """Rewards between two bounds."""
    return _Rewarding(env, lambda reward: min(max(reward, lower_bound), upper_bound))


def reward_lambda_v0(env: Any, change: Callable[[float], float]) -> Any:
    """Rewards as a function has them."""
    return _Rewarding(env, change)


def color_reduction_v0(env: Any, mode: str = "full") -> Any:
    """One of the colours, or grey."""
    if mode == "full":
        return Changed(env, lambda agent, seen: seen.mean(-1).astype(seen.dtype))
    return Changed(env, lambda agent, seen: seen[..., "RGB".index(mode)])


def resize_v1(env: Any, x_size: int, y_size: int, linear_interp: bool = True) -> Any:
    """Pictures of another size."""

    def resized(agent: str, seen: Any) -> Any:
        # Rows and columns as they are nearest.
        rows = numpy.arange(y_size) * seen.shape[0] // y_size
        columns = numpy.arange(x_size) * seen.shape[1] // x_size
        return seen[rows][:, columns]

    return Changed(env, resized)


def dtype_v0(env: Any, dtype: Any) -> Any:
    """Numbers of another kind."""
    return Changed(env, lambda agent, seen: seen.astype(dtype))


def flatten_v0(env: Any) -> Any:
    """In one row."""
    return Changed(env, lambda agent, seen: seen.reshape(-1))


def normalize_obs_v0(env: Any, env_min: float = 0.0, env_max: float = 1.0) -> Any:
    """Between two bounds."""

    def scaled(agent: str, seen: Any) -> Any:
        space = env.observation_space(agent)
        low, high = numpy.asarray(space.low), numpy.asarray(space.high)
        return (seen - low) / (high - low) * (env_max - env_min) + env_min

    return Changed(env, scaled)


def agent_indicator_v0(env: Any, type_only: bool = False) -> Any:
    """Ones in a channel, or at a place, that tells the agent; or what kind of agent it is."""
    kinds = {one: one.rpartition("_")[0] if type_only else one for one in env.possible_agents}
    order = list(dict.fromkeys(kinds.values()))

    def told(agent: str, seen: Any) -> Any:
        seen = seen[..., None] if seen.ndim == 2 else seen
        ones = numpy.zeros((*seen.shape[:-1], len(order)), seen.dtype)
        ones[..., order.index(kinds[agent])] = 1
        return numpy.concatenate([seen, ones], -1)

    return Changed(env, told)


class _Together:
    """Each agent of some worlds as one of many environments; a world begins again when it is over."""

    def __init__(self, worlds: list[Any]) -> None:
        self.worlds = worlds
        self.agents = list(worlds[0].possible_agents)
        self.num_envs = len(worlds) * len(self.agents)
        self.observation_space = worlds[0].observation_space(self.agents[0])
        self.action_space = worlds[0].action_space(self.agents[0])
        self.metadata, self.spec, self.render_mode = worlds[0].metadata, None, None
        self.is_vector_env = True

    @property
    def unwrapped(self) -> Any:
        """Itself."""
        return self

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """First states of all."""
        states: list[Any] = []
        for world in self.worlds:
            found = world.begun()
            states += [found[agent] for agent in self.agents]
        return answered(numpy.stack(states), [{} for _ in states])

    def step(self, actions: Any) -> Any:
        """The next states of all."""
        found: list[list[Any]] = [[], [], [], [], []]
        for number, world in enumerate(self.worlds):
            first = number * len(self.agents)
            chosen = dict(zip(self.agents, actions[first : first + len(self.agents)]))
            parts = list(world.following(chosen))
            if not world.agents:
                parts[0] = world.begun()
            for held, part in zip(found, parts):
                held += [part[agent] for agent in self.agents]
        states, rewards, over, cut, told = found
        gained = numpy.array(rewards, numpy.float32)
        return stepped(numpy.stack(states), gained, numpy.array(over), numpy.array(cut), told)

    def seed(self, *args: Any) -> None:
        """The run's seed says what happens."""

    close = render = seed


def pettingzoo_env_to_vec_env_v1(parallel_env: Any, *args: Any) -> Any:
    """Each agent as one of many environments."""
    return _Together([parallel_env])


def concat_vec_envs_v1(
    vec_env: Any, num_vec_envs: int, num_cpus: int = 0, base_class: str = "gymnasium"
) -> Any:
    """Several such worlds side by side, in this process."""
    (world,) = vec_env.worlds
    more = [
        world.again() if isinstance(world, Changed) else copy.copy(world) for _ in range(num_vec_envs - 1)
    ]
    return _Together([world, *more])


__getattr__ = others(__name__)
