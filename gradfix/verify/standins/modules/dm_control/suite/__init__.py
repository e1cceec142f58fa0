"""Domains, each with what is observed of it and how many values an action has."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from .... import context
from ....environments import EPISODE
from ....inert import others
from ....spaces import array, numpy
from ...dm_env import StepType, TimeStep
from ...dm_env.specs import Array, BoundedArray

DOMAINS: dict[str, tuple[dict[str, int], int]] = {
    "acrobot": ({"orientations": 4, "velocity": 2}, 1),
    "ball_in_cup": ({"position": 4, "velocity": 4}, 2),
    "cartpole": ({"position": 3, "velocity": 2}, 1),
    "cheetah": ({"position": 8, "velocity": 9}, 6),
    "finger": ({"position": 4, "velocity": 3, "touch": 2}, 2),
    "hopper": ({"position": 6, "velocity": 7, "touch": 2}, 4),
    "humanoid": (
        {
            "joint_angles": 21,
            "head_height": 0,
            "extremities": 12,
            "torso_vertical": 3,
            "com_velocity": 3,
            "velocity": 27,
        },
        21,
    ),
    "pendulum": ({"orientation": 2, "velocity": 1}, 1),
    "point_mass": ({"position": 2, "velocity": 2}, 2),
    "quadruped": (
        {"egocentric_state": 44, "torso_velocity": 3, "torso_upright": 0, "imu": 6, "force_torque": 24},
        12,
    ),
    "reacher": ({"position": 2, "to_target": 2, "velocity": 2}, 2),
    "swimmer": ({"joints": 5, "to_target": 2, "body_velocities": 18}, 5),
    "walker": ({"orientations": 14, "height": 0, "velocity": 9}, 6),
}
"""Sizes of what is observed (0: a number), and of an action."""


class Physics:
    """What is seen of a body."""

    def render(self, height: int = 240, width: int = 320, *args: Any, **kwargs: Any) -> Any:
        """A picture without anything."""
        return array(torch.zeros(height, width, 3, dtype=torch.uint8))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: array(torch.zeros(2, dtype=torch.float64))


class Environment:
    """A domain with random states and rewards."""

    def __init__(self, domain: str, task: str) -> None:
        if domain not in DOMAINS:
            said = "the environment " + domain + " is not here, its spaces are unknown, and they are needed"
            context.run().stop(said, final=True)
        self.sizes, self.count = DOMAINS[domain]
        self.generator = context.run().generator("suite", domain, task)
        self.physics = Physics()
        self.elapsed = 0
        self._step_limit = float(EPISODE)
        context.run().used("environment " + domain, f"random states, episodes of {EPISODE} steps")

    def _observed(self) -> Any:
        return OrderedDict(
            (name, array(torch.rand([size] if size else [], generator=self.generator, dtype=torch.float64)))
            for name, size in self.sizes.items()
        )

    def observation_spec(self) -> Any:
        """What is observed."""
        kind = numpy().dtype("float64")
        return OrderedDict(
            (name, Array((size,) if size else (), kind, name)) for name, size in self.sizes.items()
        )

    def action_spec(self) -> Any:
        """Values between -1 and 1."""
        return BoundedArray((self.count,), "float64", -1.0, 1.0, "action")

    def reset(self) -> TimeStep:
        """A first state."""
        self.elapsed = 0
        return TimeStep(StepType.FIRST, None, None, self._observed())

    def step(self, action: Any) -> TimeStep:
        """The next state."""
        self.elapsed += 1
        over = self.elapsed >= EPISODE
        reward = float(torch.rand((), generator=self.generator))
        return TimeStep(StepType.LAST if over else StepType.MID, reward, 1.0, self._observed())

    def close(self) -> None:
        """Nothing is open."""


def load(domain_name: str, task_name: str, *args: Any, **kwargs: Any) -> Environment:
    """A task in a domain."""
    return Environment(domain_name, task_name)


TASKS = {
    "acrobot": "swingup swingup_sparse",
    "ball_in_cup": "catch",
    "cartpole": "balance balance_sparse swingup swingup_sparse two_poles three_poles",
    "cheetah": "run",
    "finger": "spin turn_easy turn_hard",
    "hopper": "stand hop",
    "humanoid": "stand walk run run_pure_state",
    "pendulum": "swingup",
    "point_mass": "easy hard",
    "quadruped": "walk run escape fetch",
    "reacher": "easy hard",
    "swimmer": "swimmer6 swimmer15",
    "walker": "stand walk run",
}
"""Tasks of each domain (dm_control 1.0, its README and sources)."""
ALL_TASKS = BENCHMARKING = tuple((one, task) for one, tasks in TASKS.items() for task in tasks.split())
__getattr__ = others(__name__)
