"""Making environments in batches."""

from __future__ import annotations

from typing import Any

from ....environments import make
from .vec_env import DummyVecEnv


def make_vec_env(env_id: Any, n_envs: int = 1, *args: Any, **kwargs: Any) -> DummyVecEnv:
    """Several of one kind."""
    settings = kwargs.get("env_kwargs") or {}
    build = env_id if callable(env_id) else lambda: make(env_id, **settings)
    return DummyVecEnv([build for _ in range(n_envs)])


make_atari_env = make_vec_env
