"""mlagents_envs: worlds of several agents, whose names tell their spaces."""

from __future__ import annotations

from ...inert import others

__getattr__ = others(__name__)
