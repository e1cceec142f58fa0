"""gym: environments with the spaces of the real ones, whose states are random and whose episodes short."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ...environments import (
    ActionWrapper,
    AsyncVectorEnv,
    Env,
    ObservationWrapper,
    RewardWrapper,
    SyncVectorEnv,
    Wrapper,
    make,
    make_vec,
    register,
)
from . import envs, error, logger, spaces, utils, vector, wrappers
from .spaces import Space

__version__ = "0.21.0"
core = envs
__all__ = [
    "ActionWrapper",
    "AsyncVectorEnv",
    "Env",
    "ObservationWrapper",
    "RewardWrapper",
    "Space",
    "SyncVectorEnv",
    "Wrapper",
    "core",
    "envs",
    "error",
    "logger",
    "make",
    "make_vec",
    "register",
    "spaces",
    "utils",
    "vector",
    "wrappers",
]


GAMES = ("BeamRider", "Breakout", "Enduro", "Pong", "Qbert", "Seaquest", "SpaceInvaders")


def benchmark_spec(id: str) -> SimpleNamespace:
    """The games of ``Atari40M``, which gym listed until 0.9 and courses still ask for."""
    games = [SimpleNamespace(env_id=f"{one}NoFrameskip-v3", max_timesteps=40_000_000) for one in GAMES]
    return SimpleNamespace(id=id, tasks=games)


def upgrade(*args: Any) -> None:
    """Nothing is registered."""
