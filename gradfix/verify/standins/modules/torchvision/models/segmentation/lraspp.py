"""The small head of MobileNet V3 for the classes of pixels (https://arxiv.org/abs/1905.02244)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from .._api import named
from ._utils import mobile

__all__ = ["LRASPP", "lraspp_mobilenet_v3_large"]


class LRASPPHead(nn.Module):
    """Scores of what is seen at the end, and of what is seen at more places in the middle."""

    def __init__(self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int) -> None:
        super().__init__()
        self.cbr = nn.Sequential(
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.BatchNorm2d(inter_channels),
            nn.ReLU(inplace=True),
        )
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(high_channels, inter_channels, 1, bias=False), nn.Sigmoid()
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: dict[str, torch.Tensor]) -> torch.Tensor:
        """At the places of ``low``."""
        low, high = input["low"], input["high"]
        x = self.cbr(high) * self.scale(high)
        x = nn.functional.interpolate(x, size=low.shape[-2:], mode="bilinear", align_corners=False)
        found: torch.Tensor = self.low_classifier(low) + self.high_classifier(x)
        return found


class LRASPP(nn.Module):
    """A network with such a head."""

    def __init__(
        self,
        backbone: nn.Module,
        low_channels: int,
        high_channels: int,
        num_classes: int,
        inter_channels: int = 128,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: torch.Tensor) -> dict[str, torch.Tensor]:
        """``out``: batch x classes x height x width of the pictures."""
        scores = self.classifier(self.backbone(input))
        size = input.shape[-2:]
        large = nn.functional.interpolate(scores, size=size, mode="bilinear", align_corners=False)
        return OrderedDict(out=large)


def _network(num_classes: int = 21, **kwargs: Any) -> LRASPP:
    backbone, high, low = mobile(True)
    backbone.return_layers = {  # type: ignore[assignment]
        name: {"out": "high", "aux": "low"}[given]
        for name, given in backbone.return_layers.items()  # type: ignore[operator,union-attr]
    }
    return LRASPP(backbone, low, high, num_classes)


lraspp_mobilenet_v3_large = named("lraspp_mobilenet_v3_large", _network)
