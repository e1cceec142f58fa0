"""Spaces of observations and actions."""

from ...spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple

__all__ = ["Box", "Dict", "Discrete", "MultiBinary", "MultiDiscrete", "Space", "Tuple"]
