"""dm_env: what environments answer, and what they say of it (dm_env 1.6, its documentation)."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from ...inert import others
from . import specs


class StepType(enum.IntEnum):
    """Where in an episode a step is."""

    FIRST = 0
    MID = 1
    LAST = 2

    def first(self) -> bool:
        """Whether an episode begins."""
        return self is StepType.FIRST

    def mid(self) -> bool:
        """Whether it goes on."""
        return self is StepType.MID

    def last(self) -> bool:
        """Whether it is over."""
        return self is StepType.LAST


class TimeStep(NamedTuple):
    """What follows a step."""

    step_type: Any
    reward: Any
    discount: Any
    observation: Any

    def first(self) -> bool:
        """Whether an episode begins."""
        return bool(self.step_type == StepType.FIRST)

    def mid(self) -> bool:
        """Whether it goes on."""
        return bool(self.step_type == StepType.MID)

    def last(self) -> bool:
        """Whether it is over."""
        return bool(self.step_type == StepType.LAST)


class Environment:
    """What environments are derived from."""

    def reward_spec(self) -> Any:
        """One number."""
        return specs.Array((), float, "reward")

    def discount_spec(self) -> Any:
        """One number between 0 and 1."""
        return specs.BoundedArray((), float, 0.0, 1.0, "discount")

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def restart(observation: Any) -> TimeStep:
    """The first step of an episode."""
    return TimeStep(StepType.FIRST, None, None, observation)


def transition(reward: Any, observation: Any, discount: Any = 1.0) -> TimeStep:
    """A step within one."""
    return TimeStep(StepType.MID, reward, discount, observation)


def termination(reward: Any, observation: Any) -> TimeStep:
    """The last one, after which nothing follows."""
    return TimeStep(StepType.LAST, reward, 0.0, observation)


def truncation(reward: Any, observation: Any, discount: Any = 1.0) -> TimeStep:
    """The last one of an episode that is cut."""
    return TimeStep(StepType.LAST, reward, discount, observation)


__all__ = ["Environment", "StepType", "TimeStep", "specs"]
__getattr__ = others(__name__)
