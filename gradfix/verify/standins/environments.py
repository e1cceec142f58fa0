"""Environments of reinforcement learning: real spaces, random states, short episodes.

An answer has as many values as the calling code unpacks (a step gave four values in gym and gives five
in gymnasium, a reset one and two); where that does not show, as many as the imported library gives.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import random
import re
from typing import Any, ClassVar

import torch

from . import context, inert
from .spaces import Box, Dict, Discrete, MultiDiscrete, Space, array, numpy

EPISODE = 20
"""Steps of an episode."""

_envs = itertools.count()


class Registry(dict[str, Any]):
    """The project's own environments by their names; of the library's it says what there is to say."""

    def spec(self, id: str) -> Spec:
        """What is registered under a name."""
        return Spec(id)

    def all(self) -> list[Spec]:
        """What is registered of the project's own."""
        return [Spec(name) for name in self]

    @property
    def env_specs(self) -> Registry:
        """The same."""
        return self


registry = Registry()
INF = float("inf")

CONTROL: dict[str, tuple[int, Any]] = {
    # Observation's size; number of actions, or a tuple of size and bound of a continuous one.
    "CartPole": (4, 2),
    "MountainCar": (2, 3),
    "MountainCarContinuous": (2, (1, 1.0)),
    "Acrobot": (6, 3),
    "Pendulum": (3, (1, 2.0)),
    "LunarLander": (8, 4),
    "LunarLanderContinuous": (8, (2, 1.0)),
    "BipedalWalker": (24, (4, 1.0)),
    "BipedalWalkerHardcore": (24, (4, 1.0)),
    "HalfCheetah": (17, (6, 1.0)),
    "Hopper": (11, (3, 1.0)),
    "Walker2d": (17, (6, 1.0)),
    "Ant": (27, (8, 1.0)),
    "Humanoid": (376, (17, 0.4)),
    "HumanoidStandup": (376, (17, 0.4)),
    "Swimmer": (8, (2, 1.0)),
    "Reacher": (11, (2, 1.0)),
    "Pusher": (23, (7, 2.0)),
    "Thrower": (23, (7, 2.0)),
    "Striker": (23, (7, 2.0)),
    "InvertedPendulum": (4, (1, 3.0)),
    "InvertedDoublePendulum": (11, (1, 1.0)),
    "HalfCheetahBulletEnv": (26, (6, 1.0)),
    "AntBulletEnv": (28, (8, 1.0)),
    "HopperBulletEnv": (15, (3, 1.0)),
    "Walker2DBulletEnv": (22, (6, 1.0)),
    "InvertedPendulumBulletEnv": (5, (1, 1.0)),
    "RoboschoolHalfCheetah": (26, (6, 1.0)),
    "RoboschoolHopper": (15, (3, 1.0)),
    "RoboschoolAnt": (28, (8, 1.0)),
    "RoboschoolWalker2d": (22, (6, 1.0)),
    "CarRacingBullet": (8, (2, 1.0)),
}
TABLES = {
    "FrozenLake": (16, 4),
    "FrozenLake8x8": (64, 4),
    "Taxi": (500, 6),
    "CliffWalking": (48, 4),
    "NChain": (5, 2),
}
ATARI = {
    "Pong": 6, "Breakout": 4, "SpaceInvaders": 6, "Qbert": 6, "BeamRider": 9, "Enduro": 9, "Freeway": 3,
    "Assault": 7, "Asterix": 9, "Atlantis": 4, "BattleZone": 18, "Boxing": 18, "MsPacman": 9, "Seaquest": 18,
    "Frostbite": 18, "MontezumaRevenge": 18, "Alien": 18, "Amidar": 10, "Asteroids": 14, "BankHeist": 18,
    "Bowling": 6, "Centipede": 18, "DemonAttack": 6, "Gopher": 8, "Gravitar": 18, "Hero": 18, "IceHockey": 18,
    "Jamesbond": 18, "Kangaroo": 18, "Krull": 18, "KungFuMaster": 14, "Phoenix": 8, "Pitfall": 18,
    "PrivateEye": 18, "Riverraid": 18, "RoadRunner": 18, "Robotank": 18, "Skiing": 3, "Solaris": 18,
    "StarGunner": 18, "Tennis": 18, "TimePilot": 10, "Tutankham": 8, "UpNDown": 6, "Venture": 18,
    "VideoPinball": 9, "WizardOfWor": 10, "YarsRevenge": 18, "Zaxxon": 18, "DoubleDunk": 18,
    "ChopperCommand": 18,     "CrazyClimber": 9, "NameThisGame": 6, "FishingDerby": 18,
    "AirRaid": 6, "Adventure": 18, "Berzerk": 18, "Carnival": 6, "Defender": 18, "ElevatorAction": 18,
    "JourneyEscape": 16, "Pooyan": 6,
}  # fmt: skip
HIGHER = {"AirRaid": 250, "Carnival": 214, "JourneyEscape": 230, "Pooyan": 220}
"""Screens that are higher than the 210 lines of the others."""
CONSTANTS: dict[str, dict[str, float]] = {
    "CartPole": {
        "x_threshold": 2.4,
        "theta_threshold_radians": 12 * 2 * math.pi / 360,
        "gravity": 9.8,
        "masscart": 1.0,
        "masspole": 0.1,
        "total_mass": 1.1,
        "length": 0.5,
        "polemass_length": 0.05,
        "force_mag": 10.0,
        "tau": 0.02,
    },
    "MountainCar": {"min_position": -1.2, "max_position": 0.6, "max_speed": 0.07, "goal_position": 0.5},
    "MountainCarContinuous": {
        "min_action": -1.0,
        "min_position": -1.2,
        "max_position": 0.6,
        "max_speed": 0.07,
        "goal_position": 0.45,
        "power": 0.0015,
    },
    "Pendulum": {"max_speed": 8.0, "dt": 0.05, "g": 10.0, "m": 1.0, "l": 1.0},
}
"""What environments tell of themselves, by which some scripts shape rewards (gymnasium 1.2, its sources)."""
MEANINGS = (
    "NOOP FIRE UP RIGHT LEFT DOWN UPRIGHT UPLEFT DOWNRIGHT DOWNLEFT UPFIRE RIGHTFIRE LEFTFIRE DOWNFIRE "
    "UPRIGHTFIRE UPLEFTFIRE DOWNRIGHTFIRE DOWNLEFTFIRE"
).split()


class Spec:
    """What is registered of an environment."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.max_episode_steps = EPISODE
        self.reward_threshold = 195.0
        self.timestep_limit = EPISODE
        self.entry_point = ""
        self.kwargs: dict[str, Any] = {}
        self.tags: dict[str, Any] = {}


def answered(observation: Any, info: Any, **asked: Any) -> Any:
    """A reset's answer, as the user's code takes it."""
    run = context.run()
    frame = context.caller_of_standins(run)
    if frame is not None and not run.modern_gym and not asked.get("seed"):
        return (observation, info) if context.unpacked(frame) == 2 else observation
    return observation, info


def stepped(observation: Any, reward: Any, ended: Any, cut: Any, info: Any) -> Any:
    """A step's answer, as the user's code takes it."""
    run = context.run()
    count = context.unpacked(context.caller_of_standins(run))
    if count == 4 or (count != 5 and not run.modern_gym):
        over = ended | cut if hasattr(ended, "shape") else bool(ended or cut)
        return observation, reward, over, info
    return observation, reward, ended, cut, info


@functools.cache
def generators() -> Any:
    """Generators of numpy's older kind, which gym had at first, with what scripts ask of the newer kind."""

    class Numbers(numpy().random.RandomState):  # type: ignore[misc]
        """What both kinds have."""

        def integers(
            self, low: Any, high: Any = None, size: Any = None, dtype: Any = int, endpoint: bool = False
        ) -> Any:
            """Whole numbers."""
            low, high = (0, low) if high is None else (low, high)
            return self.randint(low, high + endpoint, size, dtype)

    return Numbers


def numbers(seed: int) -> Any:
    """A generator of random numbers, of numpy if it is there."""
    return random.Random(seed) if numpy() is None else generators()(seed)


class Env:
    """The base of environments, of the user's own too."""

    metadata: ClassVar[dict[str, Any]] = {"render.modes": [], "render_modes": [], "render_fps": 30}
    reward_range = (-INF, INF)
    spec: Any = None
    action_space: Any = None
    observation_space: Any = None
    render_mode: Any = None
    _np_random: Any = None

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    @property
    def unwrapped(self) -> Any:
        """The environment itself."""
        return self

    @property
    def np_random(self) -> Any:
        """A generator of numpy."""
        if self._np_random is None:
            self._np_random = numbers(context.run().seed)
        return self._np_random

    @np_random.setter
    def np_random(self, value: Any) -> None:
        self._np_random = value

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """A new episode; the user's own environment says which."""
        return None

    def seed(self, seed: Any = None) -> list[Any]:
        """The states depend on the run's seed only."""
        return [seed]

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """A black picture."""
        return array(torch.zeros(64, 64, 3, dtype=torch.uint8))

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class Made(Env):
    """An environment of known spaces."""

    def __init__(self, id: str, observations: Space, actions: Space) -> None:
        self.spec = Spec(id)
        self.observation_space = observations
        self.action_space = actions
        self.generator = context.run().generator("environment", id, next(_envs))
        self.elapsed = 0
        self._max_episode_steps = EPISODE
        self._elapsed_steps = 0
        self.np_random = None
        self.ale = self
        self.state = None
        self.max_torque = self.max_action = getattr(actions, "high", None)
        for name, value in CONSTANTS.get(re.sub(r"-v\d+$", "", id), {}).items():
            setattr(self, name, value)

    def lives(self) -> int:
        """Of a game."""
        return 3

    def getScreenRGB2(self) -> Any:
        """The screen of a game."""
        return self.observe()

    def get_action_meanings(self) -> list[str]:
        """The buttons of a game."""
        return MEANINGS[: getattr(self.action_space, "n", 0)]

    def get_keys_to_action(self) -> dict[Any, int]:
        """Nobody plays."""
        return {}

    def observe(self) -> Any:
        """A state."""
        self.state = self.observation_space.draw(self.generator)
        return self.state

    def _reset(self) -> Any:
        self.elapsed = 0
        return self.observe()

    def _step(self, action: Any) -> Any:
        self.elapsed += 1
        reward = float(torch.rand(1, generator=self.generator)) * 2 - 1
        return self.observe(), reward, self.elapsed >= EPISODE, False, {"lives": 3, "ale.lives": 3}

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """A first state."""
        return answered(self._reset(), {}, **kwargs)

    def step(self, action: Any) -> Any:
        """The next state, a reward between -1 and 1, and whether the episode is over."""
        return stepped(*self._step(action))

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        """The reward of reaching a goal: never reached."""
        return -array(torch.ones(len(achieved))) if getattr(achieved, "ndim", 1) > 1 else -1.0


class AtariEnv(Made):
    """A game."""


def make(id: Any, *args: Any, **kwargs: Any) -> Any:
    """The environment that is registered as ``id``, with the spaces of the real one."""
    from . import worlds

    run = context.run()
    name = getattr(id, "id", id)
    if name in registry:
        return registered(name, kwargs)
    short = re.sub(r"-v\d+$", "", str(name)).split("/")[-1]
    made = of_name(name, short, kwargs) or worlds.of_family(str(name), short)
    if made is None and (made := worlds.by_use(str(name))) is not None:
        worlds.told(run, str(name), made)
    if made is None:
        said = "the environment " + str(name) + " is not here, its spaces are unknown, and they are needed"
        run.stop(said, final=True)
    space = made.observation_space
    run.used("environment " + str(name), f"random states {space.shape}, episodes of {EPISODE} steps")
    return made


def of_name(name: str, short: str, settings: dict[str, Any]) -> Made | None:
    """An environment whose spaces are known from its name."""
    if short in CONTROL:
        size, actions = CONTROL[short]
        if settings.get("continuous") and short == "LunarLander":
            actions = (2, 1.0)
        bound = Box(-INF, INF, (size,))
        return Made(name, bound, Discrete(actions) if isinstance(actions, int) else box(actions))
    if short in TABLES:
        return Made(name, Discrete(TABLES[short][0]), Discrete(TABLES[short][1]))
    if short in ("CarRacing",):
        return Made(name, Box(0, 255, (96, 96, 3), "uint8"), box((3, 1.0)))
    if short.startswith(("Fetch", "HandReach", "HandManipulate")):
        size, goal, action = (
            (61, 7, 20) if short.startswith("Hand") else (10 if "Reach" in short else 25, 3, 4)
        )
        inner = {"observation": size, "achieved_goal": goal, "desired_goal": goal}
        spaces = {key: Box(-INF, INF, (count,), "float64") for key, count in inner.items()}
        return Made(name, Dict(spaces), box((action, 1.0)))
    game = re.sub(r"(-?ram|NoFrameskip|Deterministic)+$", "", short)
    if game in ATARI:
        sides = (128,) if "-ram" in short else (HIGHER.get(game, 210), 160, 3)
        screen = Box(0, 255, sides, "uint8")
        return AtariEnv(name, screen, Discrete(18 if settings.get("full_action_space") else ATARI[game]))
    return None


def box(actions: Any) -> Box:
    """Continuous actions of a size and a bound."""
    return Box(-actions[1], actions[1], (actions[0],))


def registered(name: str, settings: dict[str, Any]) -> Any:
    """An environment of the project's own."""
    entry, given = registry[name]
    if isinstance(entry, str):
        module, _, attribute = entry.partition(":")
        own = of_name(name, re.sub(r"Env$", "", attribute), settings)
        if own is not None and module.startswith(("gym.", "gymnasium.")):
            context.run().used("environment " + name, "one of the library's under another name")
            return own
        entry = load(entry)
    made = entry(**{**given, **settings})
    if getattr(made, "spec", None) is None:
        made.spec = Spec(name)
    return TimeLimit(made, limits[name]) if limits.get(name) else made


limits: dict[str, Any] = {}
"""The most steps of an episode in the project's own environments, by their names."""


def register(
    id: str, entry_point: Any = None, kwargs: Any = None, max_episode_steps: Any = None, **more: Any
) -> None:
    """Register an environment of the project's own."""
    registry[id] = (entry_point, kwargs or {})
    limits[id] = max_episode_steps


def load(name: Any) -> Any:
    """What an entry point names: ``module:attribute``."""
    module, _, attribute = str(name).partition(":")
    return getattr(importlib.import_module(module), attribute)


class Wrapper(Env):
    """Around an environment; what it does not have is that one's."""

    def __init__(self, env: Any, *args: Any, **kwargs: Any) -> None:
        self.env = env = env._environment() if isinstance(env, inert.Inert) else env
        for name in ("observation_space", "action_space", "reward_range", "metadata", "spec"):
            if name not in self.__dict__ and not isinstance(getattr(type(self), name, None), property):
                setattr(self, name, getattr(env, name, None))

    def __getattr__(self, name: str) -> Any:
        if name == "env" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.env, name)

    @property
    def unwrapped(self) -> Any:
        """The innermost environment."""
        return self.env.unwrapped

    def _reset(self) -> Any:
        found = inner_reset(self.env)
        return self.observation(found) if isinstance(self, ObservationWrapper) else found

    def _step(self, action: Any) -> Any:
        if isinstance(self, ActionWrapper):
            action = self.action(action)
        observation, reward, ended, cut, info = inner_step(self.env, action)
        if isinstance(self, ObservationWrapper):
            observation = self.observation(observation)
        if isinstance(self, RewardWrapper):
            reward = self.reward(reward)
        return observation, reward, ended, cut, info

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """The inner environment's, as the user's code takes it."""
        return answered(self._reset(), {}, **kwargs)

    def step(self, action: Any) -> Any:
        """The inner environment's, as the user's code takes it."""
        return stepped(*five(self._step(action)))

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """The inner environment's picture."""
        return self.env.render(*args, **kwargs)

    def seed(self, seed: Any = None) -> Any:
        """Passed on."""
        return self.env.seed(seed)

    def close(self) -> None:
        """Passed on."""
        self.env.close()


def inner_reset(env: Any) -> Any:
    """A reset of an environment, the observation only, whoever wrote its class."""
    if overrides(env, "reset"):
        found = env.reset()
        two = isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict)
        return found[0] if two else found
    return env._reset()


def inner_step(env: Any, action: Any) -> Any:
    """A step of an environment, five values, whoever wrote its class."""
    return five(env.step(action) if overrides(env, "step") else env._step(action))


def five(found: Any) -> Any:
    """The five values of a step, of which the user's class may give four."""
    if len(found) == 5:
        return found
    observation, reward, over, info = found
    return observation, reward, over, over & False, info


def overrides(env: Any, method: str) -> bool:
    """Whether the user's own class says how this is done."""
    function = getattr(type(env), method, None)
    return not hasattr(env, "_" + method) or not getattr(function, "__module__", "").startswith(
        "_gradfix_standins"
    )


class ObservationWrapper(Wrapper):
    """Changes observations by its method ``observation``."""

    def observation(self, observation: Any) -> Any:
        """As it is, or as its method says that gym until 0.9 looked for."""
        own = getattr(type(self), "_observation", None)
        return observation if own is None else own(self, observation)


class RewardWrapper(Wrapper):
    """Changes rewards by its method ``reward``."""

    def reward(self, reward: Any) -> Any:
        """As it is, or as its method says that gym until 0.9 looked for."""
        own = getattr(type(self), "_reward", None)
        return reward if own is None else own(self, reward)


class ActionWrapper(Wrapper):
    """Changes actions by its method ``action``."""

    def action(self, action: Any) -> Any:
        """As it is, or as its method says that gym until 0.9 looked for."""
        own = getattr(type(self), "_action", None)
        return action if own is None else own(self, action)


class Passing(Wrapper):
    """A wrapper that records, counts or scales: its values are made up here anyway."""


ClipAction = Passing


class TimeLimit(Wrapper):
    """Ends an episode after so many steps, if it has not ended by itself."""

    def __init__(self, env: Any, max_episode_steps: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(env)
        self._max_episode_steps = max_episode_steps or EPISODE
        self._elapsed_steps = 0

    def _reset(self) -> Any:
        self._elapsed_steps = 0
        return super()._reset()

    def _step(self, action: Any) -> Any:
        observation, reward, ended, cut, info = super()._step(action)
        self._elapsed_steps += 1
        if self._elapsed_steps >= self._max_episode_steps:
            info = {**(info or {}), "TimeLimit.truncated": not ended}
            cut = True
        return observation, reward, ended, cut, info

    def step(self, action: Any) -> Any:
        """As the inner environment answers, whatever it answers, up to the last step."""
        if not overrides(self.env, "step"):
            return super().step(action)
        found = [*self.env.step(action)]
        self._elapsed_steps += 1
        if self._elapsed_steps >= self._max_episode_steps:
            found[-1] = {**(found[-1] or {}), "TimeLimit.truncated": not found[2]}
            found[3 if len(found) == 5 else 2] = True
        return tuple(found)

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """As the inner environment answers, which may be told more."""
        if not overrides(self.env, "reset"):
            return super().reset(*args, **kwargs)
        self._elapsed_steps = 0
        return self.env.reset(*args, **kwargs)


class RecordEpisodeStatistics(Wrapper):
    """Says of an episode that is over how long it was."""

    def __init__(self, env: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(env)
        self.length = 0
        self.returned = 0.0
        self.return_queue: list[float] = [0.0]
        self.length_queue: list[int] = [0]

    def _step(self, action: Any) -> Any:
        observation, reward, ended, cut, info = super()._step(action)
        if getattr(reward, "shape", ()):  # Of several environments: nobody waits for these.
            return observation, reward, ended, cut, info
        self.length += 1
        self.returned += float(reward)
        if ended or cut:
            info = {**info, "episode": {"r": self.returned, "l": self.length, "t": 0.0}}
            self.length, self.returned = 0, 0.0
        return observation, reward, ended, cut, info


class TransformObservation(ObservationWrapper):
    """Changes observations by a function."""

    def __init__(self, env: Any, f: Any = None, observation_space: Any = None, func: Any = None) -> None:
        super().__init__(env)
        self.f = f or func
        if observation_space is not None:
            self.observation_space = observation_space

    def observation(self, observation: Any) -> Any:
        """What the function makes of it."""
        return self.f(observation)


class TransformReward(RewardWrapper):
    """Changes rewards by a function."""

    def __init__(self, env: Any, f: Any = None, func: Any = None) -> None:
        super().__init__(env)
        self.f = f or func

    def reward(self, reward: Any) -> Any:
        """What the function makes of it."""
        return self.f(reward)


class ResizeObservation(ObservationWrapper):
    """Pictures of another size."""

    def __init__(self, env: Any, shape: Any) -> None:
        super().__init__(env)
        size = (shape, shape) if isinstance(shape, int) else tuple(shape)
        rest = self.observation_space.shape[2:]
        self.observation_space = Box(0, 255, (*size, *rest), "uint8")

    def observation(self, observation: Any) -> Any:
        """The picture at the size."""
        return shaped(self, observation)


def shaped(env: Any, observation: Any) -> Any:
    """A picture as an environment's space has it: its values are made up anyway."""
    values = torch.as_tensor(observation).float()
    shape = env.observation_space.shape
    values = values[..., None] if values.dim() == 2 else values
    if len(shape) == 2 or shape[-1] == 1:
        values = values.mean(-1, keepdim=True)
    scaled = torch.nn.functional.interpolate(values.permute(2, 0, 1)[None], tuple(shape[:2]))[0].permute(
        1, 2, 0
    )
    return array(scaled.reshape(shape).to(torch.uint8))


class GrayScaleObservation(ObservationWrapper):
    """Pictures without colours."""

    def __init__(self, env: Any, keep_dim: bool = False, *args: Any, **kwargs: Any) -> None:
        super().__init__(env)
        shape = self.observation_space.shape[:2]
        self.observation_space = Box(0, 255, (*shape, 1) if keep_dim else shape, "uint8")

    def observation(self, observation: Any) -> Any:
        """The grey picture."""
        return shaped(self, observation)


class AtariPreprocessing(ObservationWrapper):
    """Grey pictures of 84 x 84."""

    def __init__(
        self, env: Any, *args: Any, screen_size: int = 84, grayscale_obs: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(env)
        shape = (screen_size, screen_size) if grayscale_obs else (screen_size, screen_size, 3)
        self.observation_space = Box(0, 255, shape, "uint8")

    def observation(self, observation: Any) -> Any:
        """The picture of the size."""
        return shaped(self, observation)


class FrameStack(ObservationWrapper):
    """The last few observations together."""

    def __init__(self, env: Any, num_stack: int = 4, *args: Any, **kwargs: Any) -> None:
        super().__init__(env)
        self.count = kwargs.get("stack_size", num_stack)
        inner = self.observation_space
        self.frames: list[Any] = []
        self.observation_space = Box(0, 255, (self.count, *inner.shape), inner.dtype)

    def _reset(self) -> Any:
        self.frames = []
        return super()._reset()

    def observation(self, observation: Any) -> Any:
        """As many as there are to be, the first repeated."""
        self.frames = [*(self.frames or [observation] * self.count)[1:], observation]
        return numpy().stack(self.frames)


class VectorEnv(Env):
    """Several environments at once, each of which begins again when it is over."""

    def __init__(
        self,
        env_fns: Any,
        observation_space: Any = None,
        action_space: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self.envs = [make_one() for make_one in env_fns]
        self.num_envs = len(self.envs)
        own = [one if isinstance(one, Space) else None for one in (observation_space, action_space)]
        self.single_observation_space = own[0] or self.envs[0].observation_space
        self.single_action_space = own[1] or self.envs[0].action_space
        self._dones: Any = self.none_over()
        self.observation_space = self.batched(self.single_observation_space)
        self.action_space = self.batched(self.single_action_space)
        self.is_vector_env = True
        self.spec = getattr(self.envs[0], "spec", None)
        self._actions: Any = None
        self.named_infos = context.run().modern_gym
        """Whether the infos of all environments come in one dictionary."""

    def batched(self, space: Any) -> Any:
        """The space of several values."""
        if isinstance(space, Box):
            module = numpy()
            low = module.stack([module.asarray(space.low)] * self.num_envs)
            high = module.stack([module.asarray(space.high)] * self.num_envs)
            return Box(low, high, low.shape, space.dtype)
        if isinstance(space, Discrete):
            return MultiDiscrete([space.n] * self.num_envs)
        return space

    def none_over(self) -> Any:
        """That no episode is over."""
        return array(torch.zeros(self.num_envs, dtype=torch.bool))

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """First states."""
        self._dones = self.none_over()
        return answered(self.stacked([inner_reset(env) for env in self.envs]), {}, **kwargs)

    def stacked(self, values: list[Any]) -> Any:
        """Several observations as one."""
        if isinstance(values[0], dict):
            return {name: numpy().stack([value[name] for value in values]) for name in values[0]}
        return numpy().stack(values)

    def step(self, actions: Any) -> Any:
        """The next states; a class of the user's may say how they are waited for."""
        if (
            type(self).step_wait is not VectorEnv.step_wait
            or type(self).step_async is not VectorEnv.step_async
        ):
            self.step_async(actions)
            return self.step_wait()
        return stepped(*self._step(actions))

    def step_async(self, actions: Any) -> None:
        """Keep the actions for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """The next states."""
        return stepped(*self._step(self._actions))

    def _step(self, actions: Any) -> Any:
        module = numpy()
        observations, rewards, ends, cuts, infos = [], [], [], [], []
        for env, action in zip(self.envs, actions):
            observation, reward, ended, cut, info = inner_step(env, action)
            if ended or cut:
                info = {**info, "terminal_observation": observation, "final_observation": observation}
                observation = inner_reset(env)
            observations.append(observation)
            rewards.append(reward)
            ends.append(ended)
            cuts.append(cut)
            infos.append(info)
        together: Any = self.gathered(infos) if self.named_infos else infos
        dones = module.array(ends, dtype=bool)
        self._dones = module.logical_or(dones, cuts)
        return (
            self.stacked(observations),
            module.array(rewards),
            dones,
            module.array(cuts, dtype=bool),
            together,
        )

    def gathered(self, infos: list[Any]) -> dict[str, Any]:
        """The infos of all environments in one, as gymnasium has them."""
        module = numpy()
        shared = set.intersection(*(set(info) for info in infos))
        found: dict[str, Any] = {
            name: module.array([info[name] for info in infos])
            for name in shared
            if isinstance(infos[0][name], (int, float))
        }
        over = [info if "terminal_observation" in info else None for info in infos]
        if any(over):
            held = module.empty(len(infos), dtype=object)
            ends = module.empty(len(infos), dtype=object)
            for index, info in enumerate(over):
                held[index] = None if info is None else info["terminal_observation"]
                ends[index] = info
            found["final_observation"] = found["final_obs"] = held
            found["final_info"] = ends
            found["_final_info"] = found["_final_observation"] = module.array(
                [one is not None for one in over]
            )
        return found

    def call(self, name: str, *args: Any) -> Any:
        """Ask every environment."""
        found = [getattr(env, name) for env in self.envs]
        return tuple(value(*args) if callable(value) else value for value in found)


SyncVectorEnv = AsyncVectorEnv = VectorEnv


def make_vec(
    id: Any, num_envs: int = 1, asynchronous: bool = True, wrappers: Any = None, **kwargs: Any
) -> VectorEnv:
    """Several environments of one kind, each in its wrappers."""
    around = wrappers if isinstance(wrappers, (list, tuple)) else [wrappers] if callable(wrappers) else []

    def made() -> Any:
        env = make(id)
        for wrapper in around:
            env = wrapper(env)
        return env

    return VectorEnv([made] * num_envs)
