"""Runs of labml: their settings are set, and nothing is kept of them."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any

from ...context import run
from ...inert import others
from . import tracker
from .configs import BaseConfigs


def configs(conf: Any, conf_override: dict[str, Any] | None = None) -> None:
    """Set some settings to other values."""
    if isinstance(conf, BaseConfigs):
        conf._set_values(conf_override or {})
    elif isinstance(conf, dict):
        conf.update(conf_override or {})
    else:
        raise RuntimeError("Invalid call to calculate configs")


def start(global_step: int = 0) -> AbstractContextManager[None]:
    """Begin."""
    return contextlib.nullcontext()


def record(**kwargs: Any) -> AbstractContextManager[None]:
    """Begin."""
    return contextlib.nullcontext()


def create(**kwargs: Any) -> None:
    """Begin anew."""
    tracker.reset()


def add_pytorch_models(*args: Any, **kwargs: Any) -> None:
    """Nothing: no weights are kept."""


evaluate = add_model_savers = save_checkpoint = save_bundle = add_pytorch_models
load = load_models = worker = distributed = add_pytorch_models
"""Weights that an earlier run would have left stay those that the networks are made with."""


def get_uuid() -> str:
    """The name of the run."""
    return "0" * 32


generate_uuid = get_uuid


def load_configs(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """The run ends: what the settings of an earlier one were is not made up."""
    run().stop("labml is missing and its values are needed")


__getattr__ = others(__name__)
