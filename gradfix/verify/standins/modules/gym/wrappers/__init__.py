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

Monitor = RecordVideo = NormalizeObservation = NormalizeReward = FlattenObservation = OrderEnforcing = Passing
FrameStackObservation = FrameStack
GrayscaleObservation = GrayScaleObservation


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Passing if name[0].isupper() else sys.modules[__name__]


__all__ = [
    "AtariPreprocessing",
    "ClipAction",
    "FrameStack",
    "GrayScaleObservation",
    "Passing",
    "RecordEpisodeStatistics",
    "ResizeObservation",
    "TimeLimit",
    "TransformObservation",
    "TransformReward",
]
