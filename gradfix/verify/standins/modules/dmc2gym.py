"""dmc2gym: dm_control's domains as environments of gym."""

from __future__ import annotations

from typing import Any

from ..environments import EPISODE, INF, box
from ..spaces import Box
from ..worlds import World
from .dm_control.suite import load


def make(
    domain_name: str,
    task_name: str,
    *args: Any,
    from_pixels: bool = False,
    height: int = 84,
    width: int = 84,
    channels_first: bool = True,
    **kwargs: Any,
) -> World:
    """One row of all that is observed, or a picture."""
    inner = load(domain_name, task_name)
    size = sum(one or 1 for one in inner.sizes.values())
    seen = (3, height, width) if channels_first else (height, width, 3)
    states = Box(0, 255, seen, "uint8") if from_pixels else Box(-INF, INF, (size,))
    made = World(domain_name + "-" + task_name, states, box((inner.count, 1.0)))
    made._max_episode_steps = EPISODE
    return made
