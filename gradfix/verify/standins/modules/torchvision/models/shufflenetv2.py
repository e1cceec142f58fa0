"""ShuffleNet V2: half of the channels go through, and are mixed with the others (https://arxiv.org/abs/1807.11164)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ._api import named

__all__ = [
    "ShuffleNetV2",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
]


def channel_shuffle(x: torch.Tensor, groups: int) -> torch.Tensor:
    """Channels in another order: the first of each group, then the second of each."""
    batch, channels, high, wide = x.shape
    return x.view(batch, groups, channels // groups, high, wide).transpose(1, 2).reshape(x.shape)


def _pointwise(inner: int, outer: int) -> list[nn.Module]:
    return [nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True)]


def _depthwise(width: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False), nn.BatchNorm2d(width)]


class InvertedResidual(nn.Module):
    """Two rows: one keeps what went in, or makes it smaller."""

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        half = oup // 2
        smaller = [*_depthwise(inp, stride), *_pointwise(inp, half)] if stride > 1 else []
        self.branch1 = nn.Sequential(*smaller)
        self.branch2 = nn.Sequential(
            *_pointwise(inp if stride > 1 else half, half),
            *_depthwise(half, stride),
            *_pointwise(half, half),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Both rows, mixed."""
        if self.stride == 1:
            kept, changed = x.chunk(2, dim=1)
            return channel_shuffle(torch.cat((kept, self.branch2(changed)), 1), 2)
        return channel_shuffle(torch.cat((self.branch1(x), self.branch2(x)), 1), 2)


class ShuffleNetV2(nn.Module):
    """Three parts of such blocks."""

    def __init__(
        self,
        stages_repeats: list[int],
        stages_out_channels: list[int],
        num_classes: int = 1000,
        inverted_residual: Any = InvertedResidual,
    ) -> None:
        super().__init__()
        self._stage_out_channels = stages_out_channels
        width, *middle, last = stages_out_channels
        first = nn.Conv2d(3, width, 3, 2, 1, bias=False)
        self.conv1 = nn.Sequential(first, nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for number, (count, outer) in enumerate(zip(stages_repeats, middle), 2):
            parts = [inverted_residual(width, outer, 2)]
            parts += [inverted_residual(outer, outer, 1) for _ in range(1, count)]
            self.add_module(f"stage{number}", nn.Sequential(*parts))
            width = outer
        self.conv5 = nn.Sequential(*_pointwise(width, last))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        x = self.maxpool(self.conv1(x))
        for name in ("stage2", "stage3", "stage4"):
            x = self.get_submodule(name)(x)
        found: torch.Tensor = self.fc(self.conv5(x).mean([2, 3]))
        return found


REPEATS = [4, 8, 4]
shufflenet_v2_x0_5 = named("shufflenet_v2_x0_5", ShuffleNetV2, REPEATS, [24, 48, 96, 192, 1024])
shufflenet_v2_x1_0 = named("shufflenet_v2_x1_0", ShuffleNetV2, REPEATS, [24, 116, 232, 464, 1024])
shufflenet_v2_x1_5 = named("shufflenet_v2_x1_5", ShuffleNetV2, REPEATS, [24, 176, 352, 704, 1024])
shufflenet_v2_x2_0 = named("shufflenet_v2_x2_0", ShuffleNetV2, REPEATS, [24, 244, 488, 976, 2048])
