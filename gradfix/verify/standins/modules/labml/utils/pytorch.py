"""What labml does with networks: it finds them, and looks at them."""

from __future__ import annotations

from typing import Any

import torch

from ....inert import others


def get_modules(configs: Any) -> dict[str, torch.nn.Module]:
    """The networks among settings, by the types that these are said to have."""
    return {
        key: getattr(configs, key)
        for key in dir(configs)
        if isinstance(kind := configs._get_type(key), type) and issubclass(kind, torch.nn.Module)
    }


def get_device(module: torch.nn.Module) -> torch.device:
    """Where the first parameter is."""
    return next(module.parameters()).device


def store_model_indicators(*args: Any, **kwargs: Any) -> None:
    """Nothing."""


store_optimizer_indicators = store_l1_l2 = store_var = store_model_indicators


__getattr__ = others(__name__)
