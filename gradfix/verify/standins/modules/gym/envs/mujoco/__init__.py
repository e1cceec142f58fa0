"""Robots of MuJoCo: bodies of the real sizes, which move at random about where they start.

They are here for the classes that scripts derive from them, whose own states and rewards are computed.
"""

from __future__ import annotations

import itertools
import os
import sys
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import torch

from ..... import context
from .....environments import EPISODE, INF, Env, Spec, answered, five, stepped
from .....spaces import Box, array, numpy
from .....worlds import Info


class Robot(NamedTuple):
    """What a model holds, as its file in gym 0.21 says."""

    positions: int
    velocities: int
    actions: int
    bodies: tuple[str, ...]
    timestep: float
    frames: int
    start: dict[int, float]
    bound: float = 1.0


def bodies(text: str) -> tuple[str, ...]:
    """The names of bodies, the first of which is always the world."""
    return ("world", *text.split())


STANDING = {1: 1.25}
UPRIGHT = {3: 1.0}
LEGS = "thigh leg foot thigh_left leg_left foot_left"
ANT = "torso front_left_leg aux_1 aux_1_foot front_right_leg aux_2 aux_2_foot back_leg aux_3 aux_3_foot"
HUMANOID = (
    "torso lwaist pelvis right_thigh right_shin right_foot left_thigh left_shin left_foot right_upper_arm "
    "right_lower_arm left_upper_arm left_lower_arm"
)
CHEETAH = "torso bthigh bshin bfoot fthigh fshin ffoot"
ROBOTS = {
    "ant": Robot(15, 14, 8, bodies(ANT + " right_back_leg aux_4 aux_4_foot"), 0.01, 5, {2: 0.75, **UPRIGHT}),
    "half_cheetah": Robot(9, 9, 6, bodies(CHEETAH), 0.01, 5, {}),
    "hopper": Robot(6, 6, 3, bodies("torso thigh leg foot"), 0.002, 4, STANDING),
    "walker2d": Robot(9, 9, 6, bodies("torso " + LEGS), 0.002, 4, STANDING),
    "humanoid": Robot(24, 23, 17, bodies(HUMANOID), 0.003, 5, {2: 1.4, **UPRIGHT}, 0.4),
    "humanoidstandup": Robot(24, 23, 17, bodies(HUMANOID), 0.003, 5, {2: 0.105, **UPRIGHT}, 0.4),
    "swimmer": Robot(5, 5, 2, bodies("torso mid back"), 0.01, 4, {}),
    "reacher": Robot(4, 4, 2, bodies("body0 body1 fingertip target"), 0.01, 2, {}),
    "inverted_pendulum": Robot(2, 2, 1, bodies("cart pole"), 0.02, 2, {}, 3.0),
    "inverted_double_pendulum": Robot(3, 3, 1, bodies("cart pole pole2"), 0.01, 5, {}),
}
SWAY = 0.1
"""How far anything is from where it starts at most."""
_made = itertools.count()


class Simulation:
    """``mujoco_py.MjSim``, its model and its data in one."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.data = self.model = self
        self.generator = context.run().generator("simulation", next(_made))
        self.nq, self.nv, self.nu, self.nbody = *robot[:3], len(robot.bodies)
        self.body_names = robot.bodies
        self.opt = SimpleNamespace(timestep=robot.timestep)
        self.actuator_ctrlrange = array(torch.tensor([[-robot.bound, robot.bound]] * self.nu))
        self.body_mass = array(torch.ones(self.nbody, dtype=torch.float64))
        self.start = torch.zeros(self.nq, dtype=torch.float64)
        for place, value in robot.start.items():
            self.start[place] = value
        self.reset()

    def drawn(self, *shape: int) -> Any:
        """Numbers between -1 and 1."""
        return torch.rand(shape, generator=self.generator, dtype=torch.float64) * 2 - 1

    def reset(self) -> None:
        """Everything where it starts."""
        self.time = 0.0
        self.qpos, self.qvel = array(self.start.clone()), array(torch.zeros(self.nv, dtype=torch.float64))
        self.ctrl = array(torch.zeros(self.nu, dtype=torch.float64))
        self.forward()

    def forward(self) -> None:
        """What follows from positions and velocities."""
        self.xpos, self.xipos = (array(self.drawn(self.nbody, 3)) for _ in range(2))
        self.cvel, self.cfrc_ext = (array(self.drawn(self.nbody, 6)) for _ in range(2))
        self.cinert = array(self.drawn(self.nbody, 10))
        self.xpos[1, : min(3, self.nq)] = self.qpos[:3]
        self.body_xpos, self.subtree_com = self.xpos, self.xipos
        self.qfrc_actuator, self.qfrc_constraint = (array(self.drawn(self.nv)) for _ in range(2))

    def step(self) -> None:
        """The next moment."""
        self.time += self.robot.timestep
        self.qpos = array(self.start + SWAY * self.drawn(self.nq))
        self.qvel = array(self.drawn(self.nv))
        self.forward()

    def get_state(self) -> Any:
        """When it is, where everything is, and how fast."""
        here = {"time": self.time, "qpos": self.qpos.copy(), "qvel": self.qvel.copy()}
        return SimpleNamespace(**here, act=None, udd_state={})

    def set_state(self, state: Any) -> None:
        """Be as it was."""
        self.time, self.qpos, self.qvel = state.time, state.qpos.copy(), state.qvel.copy()

    def body_name2id(self, name: str) -> int:
        """The number of a body."""
        return self.body_names.index(name)

    def get_body_xpos(self, name: str) -> Any:
        """Where a body is."""
        return self.xpos[self.body_name2id(name)]

    def get_body_xmat(self, name: str) -> Any:
        """How a body is turned: as at first."""
        return array(torch.eye(3, dtype=torch.float64))

    def get_body_xquat(self, name: str) -> Any:
        """The same as four numbers."""
        return array(torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64))

    def get_body_xvelp(self, name: str) -> Any:
        """How fast a body is, or turns."""
        return self.cvel[self.body_name2id(name)][3:]

    get_body_xvelr = get_body_xvelp


class MujocoEnv(Env):
    """The base of environments with a robot: one of the library's own, known by the name of its file."""

    def __init__(self, model_path: Any, frame_skip: int, observation_space: Any = None, **more: Any) -> None:
        run, name = context.run(), os.path.basename(str(model_path))
        robot = ROBOTS.get(os.path.splitext(name)[0])
        if robot is None:
            run.stop(f"the model {name} of MuJoCo is not here, and its sizes are needed", final=True)
        run.used("MuJoCo's model " + name, "bodies of the same sizes, which move at random")
        self.frame_skip = frame_skip
        self.sim = self.data = self.model = Simulation(robot)
        self.viewer = None
        self.spec = Spec(type(self).__name__)
        self._max_episode_steps = EPISODE
        self.init_qpos, self.init_qvel = self.sim.qpos.copy(), self.sim.qvel.copy()
        self._set_action_space()
        self.seed()
        if observation_space is None:
            observation_space = self._set_observation_space(five(self.step(self.action_space.sample()))[0])
        self.observation_space = observation_space

    def _set_action_space(self) -> Any:
        self.action_space = Box(-self.sim.robot.bound, self.sim.robot.bound, (self.sim.nu,))
        return self.action_space

    def _set_observation_space(self, observation: Any) -> Any:
        self.observation_space = Box(-INF, INF, observation.shape, observation.dtype)
        return self.observation_space

    @property
    def dt(self) -> float:
        """Seconds from one state to the next."""
        return float(self.sim.opt.timestep * self.frame_skip)

    def do_simulation(self, ctrl: Any, n_frames: int) -> None:
        """The next state."""
        self.sim.ctrl[:] = ctrl
        for _ in range(n_frames):
            self.sim.step()

    def set_state(self, qpos: Any, qvel: Any) -> None:
        """Be in a state."""
        self.sim.qpos, self.sim.qvel = numpy().array(qpos), numpy().array(qvel)
        self.sim.forward()

    def state_vector(self) -> Any:
        """Where everything is, and how fast."""
        return numpy().concatenate([self.sim.qpos.flat, self.sim.qvel.flat])

    def get_body_com(self, body_name: str) -> Any:
        """Where a body is."""
        return self.sim.get_body_xpos(body_name)

    def reset_model(self) -> Any:
        """A first state."""
        near = SWAY * self.sim.drawn(self.sim.nq + self.sim.nv).numpy()
        self.set_state(self.init_qpos + near[: self.sim.nq], self.init_qvel + near[self.sim.nq :])
        return self._get_obs()

    def viewer_setup(self) -> None:
        """Nobody looks."""

    def _reset(self) -> Any:
        self.sim.reset()
        return self.reset_model()

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """A first state, as the user's code takes it."""
        return answered(self._reset(), {}, **kwargs)

    def _get_obs(self) -> Any:
        return self.state_vector()

    def _step(self, action: Any) -> Any:
        self.do_simulation(action, self.frame_skip)
        return self._get_obs(), float(self.sim.drawn()), False, False, Info()

    def step(self, action: Any) -> Any:
        """The next state, and a reward between -1 and 1."""
        return stepped(*self._step(action))


class Known(MujocoEnv):
    """An environment of the library's with one of its robots."""

    name: ClassVar[str] = ""
    ahead: ClassVar[int] = 1
    """Positions that its states leave out: how far it has come."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(self.name + ".xml", ROBOTS[self.name].frames)

    def _get_obs(self) -> Any:
        return numpy().concatenate([self.sim.qpos[self.ahead :], self.sim.qvel])


class HalfCheetahEnv(Known):
    """A cheetah of two legs."""

    name = "half_cheetah"


class HopperEnv(Known):
    """One leg."""

    name = "hopper"


class Walker2dEnv(Known):
    """Two legs."""

    name = "walker2d"


class SwimmerEnv(Known):
    """Three parts in a row."""

    name, ahead = "swimmer", 2


class AntEnv(Known):
    """Four legs; gym's states have the forces from without."""

    name, ahead = "ant", 2

    def _get_obs(self) -> Any:
        seen = super()._get_obs()
        forces = [] if context.run().modern_gym else [self.sim.cfrc_ext.flat]
        return numpy().concatenate([seen, *forces])


class HumanoidEnv(Known):
    """A person."""

    name, ahead = "humanoid", 2

    def _get_obs(self) -> Any:
        sim = self.sim
        more = [sim.cinert.flat, sim.cvel.flat, sim.qfrc_actuator.flat, sim.cfrc_ext.flat]
        return numpy().concatenate([super()._get_obs(), *more])


class HumanoidStandupEnv(HumanoidEnv):
    """A person who lies."""

    name = "humanoidstandup"


class ReacherEnv(Known):
    """An arm that is to reach a place."""

    name = "reacher"

    def _get_obs(self) -> Any:
        sim, angles = self.sim, self.sim.qpos[:2]
        away = self.get_body_com("fingertip") - self.get_body_com("target")
        return numpy().concatenate(
            [numpy().cos(angles), numpy().sin(angles), sim.qpos[2:], sim.qvel[:2], away]
        )


class InvertedPendulumEnv(Known):
    """A pole on a cart."""

    name, ahead = "inverted_pendulum", 0


class InvertedDoublePendulumEnv(Known):
    """Two poles on a cart."""

    name = "inverted_double_pendulum"

    def _get_obs(self) -> Any:
        sim, angles = self.sim, self.sim.qpos[1:]
        turned = [numpy().sin(angles), numpy().cos(angles)]
        return numpy().concatenate([sim.qpos[:1], *turned, sim.qvel, sim.qfrc_constraint])


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name[0].isupper():
        raise AttributeError(name)
    # Each robot has a module of its own, and one for each version (``half_cheetah_v3``).
    return sys.modules[__name__]
