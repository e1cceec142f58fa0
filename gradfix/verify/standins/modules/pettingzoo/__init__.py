"""pettingzoo: worlds of several agents, of known names and spaces."""

from __future__ import annotations

from ...inert import others
from .worlds import Parallel as ParallelEnv
from .worlds import Turns as AECEnv

__all__ = ["AECEnv", "ParallelEnv"]
__getattr__ = others(__name__)
