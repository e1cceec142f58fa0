"""d4rl: transitions that were collected before, made up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch

from ..inert import others


def qlearning_dataset(env: Any, dataset: Any = None, **kwargs: Any) -> dict[str, Any]:
    """Each state with the next one."""
    held = dict(dataset or env.get_dataset())
    held.pop("timeouts", None)
    return held


def sequence_dataset(env: Any, dataset: Any = None, **kwargs: Any) -> Iterator[dict[str, Any]]:
    """One episode after the other."""
    held = dict(dataset or env.get_dataset())
    ends = torch.as_tensor(held["terminals"]).nonzero().flatten().tolist()
    for first, last in zip([0, *(one + 1 for one in ends)], ends):
        yield {name: values[first : last + 1] for name, values in held.items()}


def get_normalized_score(name: str, score: Any) -> Any:
    """As it is."""
    return score


gym_mujoco = locomotion = offline_env = sys.modules[__name__]
__getattr__ = others(__name__)
