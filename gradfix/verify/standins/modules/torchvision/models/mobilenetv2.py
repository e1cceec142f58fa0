"""Networks of convolutions that go through each channel by itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ....context import run

__all__ = ["InvertedResidual", "MobileNetV2", "mobilenet_v2"]


def _block(inner: int, outer: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    layers = nn.Conv2d(inner, outer, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(layers, nn.BatchNorm2d(outer), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    """Wider within than at its ends."""

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int, **kwargs: Any) -> None:
        super().__init__()
        hidden = round(inp * expand_ratio)
        self.use_res_connect = stride == 1 and inp == oup
        wider = [_block(inp, hidden, 1)] if expand_ratio != 1 else []
        ends = [nn.Conv2d(hidden, oup, 1, bias=False), nn.BatchNorm2d(oup)]
        self.conv = nn.Sequential(*wider, _block(hidden, hidden, 3, stride, hidden), *ends)
        self.out_channels = oup

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output, with what went in where it fits."""
        found: torch.Tensor = self.conv(x)
        return x + found if self.use_res_connect else found


def _whole(width: float) -> int:
    nearest = max(8, int(width + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * width else nearest


class MobileNetV2(nn.Module):
    """Seventeen such blocks."""

    SETTINGS = (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    )  # fmt: skip

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0, dropout: float = 0.2, **kwargs: Any
    ) -> None:
        super().__init__()
        width = _whole(32 * width_mult)
        self.last_channel = _whole(1280 * max(1.0, width_mult))
        layers: list[nn.Module] = [_block(3, width, stride=2)]
        for ratio, channels, count, stride in self.SETTINGS:
            outer = _whole(channels * width_mult)
            for number in range(count):
                layers.append(InvertedResidual(width, outer, stride if number == 0 else 1, ratio))
                width = outer
        self.features = nn.Sequential(*layers, _block(width, self.last_channel, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        pooled = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1)
        found: torch.Tensor = self.classifier(pooled)
        return found


def mobilenet_v2(
    pretrained: Any = None, *args: Any, weights: Any = None, progress: Any = None, **kwargs: Any
) -> MobileNetV2:
    """MobileNet V2, never with trained weights."""
    if pretrained or weights:
        run().used("weights of mobilenet_v2", "those that it is made with")
    return MobileNetV2(**kwargs)
