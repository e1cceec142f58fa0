"""Wrappers; those that only record or count pass everything on."""

from __future__ import annotations

import sys
from typing import Any

from ....environments import (
    AtariPreprocessing,
    ClipAction,
    FrameStack,
    GrayScaleObservation,
    Passing,
    RecordEpisodeStatistics,
    ResizeObservation,
    TimeLimit,
    TransformObservation,
    TransformReward,
)

FrameStackObservation = FrameStack
GrayscaleObservation = GrayScaleObservation


class Monitor(RecordEpisodeStatistics):
    """Knows of the episodes that are over how long they were and what they brought."""

    def __init__(self, env: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(env)
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.steps = 0

    def _step(self, action: Any) -> Any:
        answer = super()._step(action)
        self.steps += 1
        if isinstance(answer[-1], dict) and (episode := answer[-1].get("episode")):
            self.returns.append(episode["r"])
            self.lengths.append(episode["l"])
        return answer

    def get_episode_rewards(self) -> list[float]:
        """What each brought."""
        return self.returns

    def get_episode_lengths(self) -> list[int]:
        """How many steps each had."""
        return self.lengths

    def get_total_steps(self) -> int:
        """Steps of all of them."""
        return self.steps


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if not name[0].isupper():
        return sys.modules[__name__]
    # Scripts look for a wrapper by its name.
    made = globals()[name] = type(name, (Passing,), {"__module__": __name__})
    return made


__all__ = [
    "AtariPreprocessing",
    "ClipAction",
    "FrameStack",
    "GrayScaleObservation",
    "Monitor",
    "RecordEpisodeStatistics",
    "ResizeObservation",
    "TimeLimit",
    "TransformObservation",
    "TransformReward",
]
