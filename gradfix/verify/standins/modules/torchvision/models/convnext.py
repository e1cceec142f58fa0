"""ConvNeXt: convolutions in blocks like those of transformers (https://arxiv.org/abs/2201.03545)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ....context import run
from ....weights import blocks
from ..ops.misc import Conv2dNormActivation, Permute, StochasticDepth
from ._api import named

__all__ = ["ConvNeXt", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny"]


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of each place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Channels stay where they are."""
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class CNBlock(nn.Module):
    """A wide window over each channel, then two layers over the channels of each place."""

    def __init__(self, dim: int, layer_scale: float, stochastic_depth_prob: float) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, 7, padding=3, groups=dim),
            Permute([0, 2, 3, 1]),
            nn.LayerNorm(dim, eps=1e-6),
            nn.Linear(dim, 4 * dim),
            nn.GELU(),
            nn.Linear(4 * dim, dim),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(torch.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output and what went in."""
        found: torch.Tensor = self.stochastic_depth(self.layer_scale * self.block(x))
        return found + x


class ConvNeXt(nn.Module):
    """Four parts, each of which begins with half the height and width, the first with a quarter."""

    def __init__(
        self,
        widths: list[int],
        depths: list[int],
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        first = Conv2dNormActivation(3, widths[0], 4, 4, 0, 1, _norm, None, bias=True)
        parts: list[nn.Module] = [first]
        number, last = 0, max(1, sum(depths) - 1)
        for index, (width, depth) in enumerate(zip(widths, depths)):
            if index:
                before = widths[index - 1]
                parts.append(nn.Sequential(_norm(before), nn.Conv2d(before, width, 2, 2)))
            made = []
            for _ in range(depth):
                made.append(CNBlock(width, layer_scale, stochastic_depth_prob * number / last))
                number += 1
            parts.append(nn.Sequential(*made))
        self.features = nn.Sequential(*parts)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(_norm(widths[-1]), nn.Flatten(1), nn.Linear(widths[-1], num_classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        found: torch.Tensor = self.classifier(self.avgpool(self.features(x)))
        return found


def _norm(width: int) -> LayerNorm2d:
    return LayerNorm2d(width, eps=1e-6)


def _network(name: str, width: int, depth: int, drop: float, **kwargs: Any) -> ConvNeXt:
    depths = blocks(run(), name, [3, 3, depth, 3])
    return ConvNeXt(
        [width << index for index in range(4)], depths, **{"stochastic_depth_prob": drop, **kwargs}
    )


convnext_tiny = named("convnext_tiny", _network, "convnext_tiny", 96, 9, 0.1)
convnext_small = named("convnext_small", _network, "convnext_small", 96, 27, 0.4)
convnext_base = named("convnext_base", _network, "convnext_base", 128, 27, 0.5)
convnext_large = named("convnext_large", _network, "convnext_large", 192, 27, 0.5)
