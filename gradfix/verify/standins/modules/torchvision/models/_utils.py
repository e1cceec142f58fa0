"""What several networks share."""

from __future__ import annotations

import sys
import types
from typing import Any

import torch
from torch import nn

__all__ = ["IntermediateLayerGetter"]


class IntermediateLayerGetter(nn.ModuleDict):
    """The parts of a network up to the last one that is asked for; answers with what those give.

    ``return_layers`` says under which name each of them is answered.
    """

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        wanted = {str(key): str(value) for key, value in return_layers.items()}
        names = [name for name, _ in model.named_children()]
        if not set(wanted) <= set(names):
            raise ValueError("return_layers are not present in model")
        last = max(names.index(name) for name in wanted)
        super().__init__(dict(list(model.named_children())[: last + 1]))
        self.return_layers = wanted

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """What the parts give, by their new names."""
        found = {}
        for name, part in self.items():
            x = part(x)
            if name in self.return_layers:
                found[self.return_layers[name]] = x
        return found


def _make_divisible(value: float, divisor: int, min_value: int | None = None) -> int:
    """The nearest number that ``divisor`` divides, at most a tenth smaller."""
    nearest = max(min_value or divisor, int(value + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * value else nearest


def callable_as(module: str, name: str) -> None:
    """Let a module be called as the function of its own name.

    In the real package ``models.googlenet`` is the function, whoever has imported the module before.
    """

    class Called(types.ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return getattr(self, name)(*args, **kwargs)

    sys.modules[module].__class__ = Called
