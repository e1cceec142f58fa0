"""Feature pyramids: maps of all sizes that know what the smaller ones have seen (https://arxiv.org/abs/1612.03144)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .misc import Conv2dNormActivation

__all__ = ["FeaturePyramidNetwork"]

functional = nn.functional


class ExtraFPNBlock(nn.Module):
    """More maps after the smallest one."""

    def forward(
        self, results: list[torch.Tensor], x: list[torch.Tensor], names: list[str]
    ) -> tuple[list[torch.Tensor], list[str]]:
        """All maps and their names."""
        raise NotImplementedError


class LastLevelMaxPool(ExtraFPNBlock):
    """Every second place of the smallest one."""

    def forward(
        self, results: list[torch.Tensor], x: list[torch.Tensor], names: list[str]
    ) -> tuple[list[torch.Tensor], list[str]]:
        """All maps and their names."""
        return [*results, functional.max_pool2d(results[-1], 1, 2)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two more convolutions."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        self.use_P5 = in_channels == out_channels

    def forward(
        self, results: list[torch.Tensor], x: list[torch.Tensor], names: list[str]
    ) -> tuple[list[torch.Tensor], list[str]]:
        """All maps and their names."""
        sixth = self.p6(results[-1] if self.use_P5 else x[-1])
        return [*results, sixth, self.p7(functional.relu(sixth))], [*names, "p6", "p7"]


class FeaturePyramidNetwork(nn.Module):
    """Maps of one width from maps of several, the largest first."""

    def __init__(
        self,
        in_channels_list: list[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        settings: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": None}
        self.inner_blocks = nn.ModuleList(
            Conv2dNormActivation(inner, out_channels, 1, padding=0, **settings) for inner in in_channels_list
        )
        self.layer_blocks = nn.ModuleList(
            Conv2dNormActivation(out_channels, out_channels, 3, **settings) for _ in in_channels_list
        )
        self.extra_blocks = extra_blocks

    def forward(self, x: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Each of the maps, by the same names, and those that come after them."""
        names, given = list(x), list(x.values())
        above: Any = None
        results: list[torch.Tensor] = []
        for index in reversed(range(len(given))):
            inner = self.inner_blocks[index](given[index])
            if above is not None:
                inner = inner + functional.interpolate(above, size=inner.shape[-2:], mode="nearest")
            above = inner
            results.insert(0, self.layer_blocks[index](inner))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, given, names)
        return OrderedDict(zip(names, results))
