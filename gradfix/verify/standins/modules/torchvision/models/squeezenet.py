"""SqueezeNet: few weights by layers that are narrow in between (https://arxiv.org/abs/1602.07360)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ._api import named

__all__ = ["Fire", "SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

POOL = "pool"
LAYERS: dict[str, tuple[int, int, list[Any]]] = {
    "1_0": (96, 7, [POOL, 16, 16, 32, POOL, 32, 48, 48, 64, POOL, 64]),
    "1_1": (64, 3, [POOL, 16, 16, POOL, 32, 32, POOL, 48, 48, 64, 64]),
}
"""By version: channels and window of the first layer, and how narrow each block is."""


class Fire(nn.Module):
    """A narrow layer, and two side by side."""

    def __init__(
        self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int
    ) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, 1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the two layers give."""
        x = self.squeeze_activation(self.squeeze(x))
        small = self.expand1x1_activation(self.expand1x1(x))
        return torch.cat([small, self.expand3x3_activation(self.expand3x3(x))], 1)


class SqueezeNet(nn.Module):
    """Eight such blocks; the last layer is a convolution whose outputs are pooled."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.num_classes = num_classes
        width, window, plan = LAYERS[version]
        parts: list[nn.Module] = [nn.Conv2d(3, width, window, 2), nn.ReLU(inplace=True)]
        for narrow in plan:
            if narrow == POOL:
                parts.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            else:
                parts.append(Fire(width, narrow, 4 * narrow, 4 * narrow))
                width = 8 * narrow
        self.features = nn.Sequential(*parts)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Conv2d(width, num_classes, 1),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((1, 1)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        return torch.flatten(self.classifier(self.features(x)), 1)


squeezenet1_0 = named("squeezenet1_0", SqueezeNet, "1_0")
squeezenet1_1 = named("squeezenet1_1", SqueezeNet, "1_1")
