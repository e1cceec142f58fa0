"""What is registered: everything that can be made."""

from __future__ import annotations

from types import SimpleNamespace

from ....environments import (
    ActionWrapper,
    AtariEnv,
    Env,
    ObservationWrapper,
    RewardWrapper,
    Wrapper,
    load,
    register,
    registry,
)

atari = SimpleNamespace(AtariEnv=AtariEnv, atari_env=SimpleNamespace(AtariEnv=AtariEnv))
__all__ = [
    "ActionWrapper",
    "Env",
    "ObservationWrapper",
    "RewardWrapper",
    "Wrapper",
    "load",
    "register",
    "registry",
]
