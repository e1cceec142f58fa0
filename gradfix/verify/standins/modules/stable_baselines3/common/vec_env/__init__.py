"""Several environments at once, as OpenAI's baselines step them: four values, new episodes by themselves."""

from __future__ import annotations

from typing import Any

import numpy

from .....environments import inner_reset, inner_step
from .....spaces import Box
from ..running_mean_std import RunningMeanStd


class VecEnv:
    """The base of all."""

    def __init__(self, num_envs: int, observation_space: Any, action_space: Any) -> None:
        self.num_envs, self.observation_space, self.action_space = num_envs, observation_space, action_space

    def step(self, actions: Any) -> Any:
        """Observations, rewards, which episodes are over, and what else is known."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Begin a step."""
        raise NotImplementedError

    def step_wait(self) -> Any:
        """End a step."""
        raise NotImplementedError

    def seed(self, seed: Any = None) -> list[Any]:
        """The states depend on the run's seed only."""
        return [seed] * self.num_envs

    def close(self) -> None:
        """Nothing is open."""

    @property
    def unwrapped(self) -> Any:
        """The innermost environments."""
        return self


class DummyVecEnv(VecEnv):
    """One after the other in this process."""

    def __init__(self, env_fns: Any, *args: Any, **kwargs: Any) -> None:
        self.envs = [build() for build in env_fns]
        first = self.envs[0]
        super().__init__(len(self.envs), first.observation_space, first.action_space)
        self.actions: Any = None

    def reset(self) -> Any:
        """First states."""
        return together([inner_reset(env) for env in self.envs])

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        rows = []
        for env, action in zip(self.envs, self.actions):
            observation, reward, ended, cut, info = inner_step(env, action)
            if ended or cut:
                info = {**info, "terminal_observation": observation}
                observation = inner_reset(env)
            rows.append((observation, reward, bool(ended or cut), info))
        observations, rewards, over, infos = zip(*rows)
        return (
            together(list(observations)),
            numpy.array(rewards, numpy.float32),
            numpy.array(over),
            list(infos),
        )

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        """What each one has under a name."""
        return [getattr(env, name) for env in self.envs]

    def env_method(self, name: str, *args: Any, **kwargs: Any) -> list[Any]:
        """What each one answers."""
        return [getattr(env, name)(*args) for env in self.envs]

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """A picture of the first."""
        return self.envs[0].render()


SubprocVecEnv = ShmemVecEnv = DummyVecEnv


def together(rows: list[Any]) -> Any:
    """Observations in one array."""
    if isinstance(rows[0], dict):
        return {name: numpy.stack([row[name] for row in rows]) for name in rows[0]}
    return numpy.stack([numpy.asarray(row) for row in rows])


class VecEnvWrapper(VecEnv):
    """Around several environments."""

    def __init__(self, venv: Any, observation_space: Any = None, action_space: Any = None) -> None:
        self.venv = venv
        super().__init__(
            venv.num_envs, observation_space or venv.observation_space, action_space or venv.action_space
        )

    def __getattr__(self, name: str) -> Any:
        if name == "venv" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.venv, name)

    def reset(self) -> Any:
        """First states."""
        return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        return self.venv.step_wait()

    @property
    def unwrapped(self) -> Any:
        return self.venv.unwrapped


class VecNormalize(VecEnvWrapper):
    """Observations and rewards scaled by what was seen."""

    def __init__(
        self,
        venv: Any,
        training: bool = True,
        norm_obs: bool = True,
        norm_reward: bool = True,
        clip_obs: float = 10.0,
        clip_reward: float = 10.0,
        gamma: float = 0.99,
        epsilon: float = 1e-8,
        **kwargs: Any,
    ) -> None:
        super().__init__(venv)
        norm_obs = norm_obs and kwargs.get("ob", True)
        self.obs_rms = RunningMeanStd(shape=self.observation_space.shape) if norm_obs else None
        self.ob_rms = self.obs_rms
        self.ret_rms = RunningMeanStd(shape=()) if norm_reward and kwargs.get("ret", True) else None
        self.training, self.norm_obs, self.norm_reward = training, norm_obs, norm_reward
        self.clip_obs, self.clip_reward = clip_obs, clip_reward
        self.gamma, self.epsilon = gamma, epsilon
        self.ret = self.returns = numpy.zeros(self.num_envs)

    def _obfilt(self, obs: Any, update: bool = True) -> Any:
        return self.normalize_obs(obs, update)

    def normalize_obs(self, obs: Any, update: bool = True) -> Any:
        """Scaled observations."""
        if self.obs_rms is None:
            return obs
        if self.training and update:
            self.obs_rms.update(obs)
        scaled = (obs - self.obs_rms.mean) / numpy.sqrt(self.obs_rms.var + self.epsilon)
        return numpy.clip(scaled, -self.clip_obs, self.clip_obs).astype(numpy.float32)

    def reset(self) -> Any:
        self.returns = numpy.zeros(self.num_envs)
        return self._obfilt(self.venv.reset())

    def step_wait(self) -> Any:
        obs, rewards, over, infos = self.venv.step_wait()
        self.returns = self.returns * self.gamma + rewards
        if self.ret_rms is not None:
            self.ret_rms.update(self.returns)
            scale = numpy.sqrt(self.ret_rms.var + self.epsilon)
            rewards = numpy.clip(rewards / scale, -self.clip_reward, self.clip_reward)
        self.returns[over] = 0.0
        return self._obfilt(obs), rewards, over, infos


class VecFrameStack(VecEnvWrapper):
    """The last few observations behind one another in the last dimension."""

    def __init__(self, venv: Any, n_stack: int = 4, *args: Any, **kwargs: Any) -> None:
        space = venv.observation_space
        self.count = kwargs.get("nstack", n_stack)
        self.depth = space.shape[-1]
        shape = (*space.shape[:-1], self.depth * self.count)
        super().__init__(venv, Box(0, 255, shape, space.dtype))
        self.stacked = numpy.zeros((venv.num_envs, *shape), space.dtype)

    def _push(self, obs: Any) -> Any:
        self.stacked = numpy.concatenate([self.stacked[..., self.depth :], obs], -1)
        return self.stacked

    def reset(self) -> Any:
        self.stacked[...] = 0
        return self._push(self.venv.reset())

    def step_wait(self) -> Any:
        obs, rewards, over, infos = self.venv.step_wait()
        self.stacked[over] = 0
        return self._push(obs), rewards, over, infos


class VecTransposeImage(VecEnvWrapper):
    """Channels first."""

    def __init__(self, venv: Any, *args: Any, **kwargs: Any) -> None:
        height, width, depth = venv.observation_space.shape
        super().__init__(venv, Box(0, 255, (depth, height, width), "uint8"))

    def reset(self) -> Any:
        return self.venv.reset().transpose(0, 3, 1, 2)

    def step_wait(self) -> Any:
        obs, rewards, over, infos = self.venv.step_wait()
        return obs.transpose(0, 3, 1, 2), rewards, over, infos


class VecMonitor(VecEnvWrapper):
    """Counts nothing."""


class CloudpickleWrapper:
    """What a process is given to make."""

    def __init__(self, x: Any) -> None:
        self.x = self.var = x
