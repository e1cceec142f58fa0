"""Residual networks of films: batch x channels x time x height x width (https://arxiv.org/abs/1711.11248)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .._api import named

__all__ = ["VideoResNet", "mc3_18", "r2plus1d_18", "r3d_18"]


class Conv3DSimple(nn.Conv3d):
    """A window in time and space."""

    def __init__(self, in_planes: int, out_planes: int, midplanes: Any = None, stride: int = 1) -> None:
        super().__init__(in_planes, out_planes, 3, stride, 1, bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        """In time, height and width."""
        return stride, stride, stride


class Conv3DNoTemporal(nn.Conv3d):
    """A window in space."""

    def __init__(self, in_planes: int, out_planes: int, midplanes: Any = None, stride: int = 1) -> None:
        super().__init__(in_planes, out_planes, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        """In time, height and width."""
        return 1, stride, stride


class Conv2Plus1D(nn.Sequential):
    """A window in space, then one in time."""

    def __init__(self, in_planes: int, out_planes: int, midplanes: int, stride: int = 1) -> None:
        super().__init__(
            nn.Conv3d(in_planes, midplanes, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
            nn.BatchNorm3d(midplanes),
            nn.ReLU(inplace=True),
            nn.Conv3d(midplanes, out_planes, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False),
        )

    get_downsample_stride = staticmethod(Conv3DSimple.get_downsample_stride)


class BasicBlock(nn.Module):
    """Two convolutions and what went into them."""

    expansion = 1

    def __init__(
        self, inplanes: int, planes: int, conv_builder: Any, stride: int = 1, downsample: Any = None
    ) -> None:
        super().__init__()
        # As many as one window in time and space would have weights.
        middle = inplanes * planes * 27 // (inplanes * 9 + 3 * planes)
        self.conv1 = nn.Sequential(
            conv_builder(inplanes, planes, middle, stride), nn.BatchNorm3d(planes), nn.ReLU(inplace=True)
        )
        self.conv2 = nn.Sequential(conv_builder(planes, planes, middle), nn.BatchNorm3d(planes))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        out = self.conv2(self.conv1(x))
        found: torch.Tensor = self.relu(out + (x if self.downsample is None else self.downsample(x)))
        return found


class BasicStem(nn.Sequential):
    """The first layer."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class R2Plus1dStem(nn.Sequential):
    """The same in space, then in time."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 45, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False),
            nn.BatchNorm3d(45),
            nn.ReLU(inplace=True),
            nn.Conv3d(45, 64, (3, 1, 1), 1, (1, 0, 0), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class VideoResNet(nn.Module):
    """Four parts of such blocks, each with its own kind of convolution."""

    def __init__(
        self,
        block: Any,
        conv_makers: Any,
        layers: list[int],
        stem: Any,
        num_classes: int = 400,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        self.inplanes = 64
        self.stem = stem()
        self.layer1 = self._make_layer(block, conv_makers[0], 64, layers[0])
        self.layer2 = self._make_layer(block, conv_makers[1], 128, layers[1], 2)
        self.layer3 = self._make_layer(block, conv_makers[2], 256, layers[2], 2)
        self.layer4 = self._make_layer(block, conv_makers[3], 512, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _make_layer(
        self, block: Any, conv_builder: Any, planes: int, blocks: int, stride: int = 1
    ) -> nn.Sequential:
        outer, downsample = planes * block.expansion, None
        if stride != 1 or self.inplanes != outer:
            steps = conv_builder.get_downsample_stride(stride)
            downsample = nn.Sequential(
                nn.Conv3d(self.inplanes, outer, 1, steps, bias=False), nn.BatchNorm3d(outer)
            )
        made = [block(self.inplanes, planes, conv_builder, stride, downsample)]
        self.inplanes = outer
        made += [block(outer, planes, conv_builder) for _ in range(1, blocks)]
        return nn.Sequential(*made)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        found: torch.Tensor = self.fc(self.avgpool(x).flatten(1))
        return found


def _network(kinds: Any, stem: Any, **kwargs: Any) -> VideoResNet:
    return VideoResNet(BasicBlock, kinds, [2, 2, 2, 2], stem, **kwargs)


r3d_18 = named("r3d_18", _network, [Conv3DSimple] * 4, BasicStem)
mc3_18 = named("mc3_18", _network, [Conv3DSimple, *[Conv3DNoTemporal] * 3], BasicStem)
r2plus1d_18 = named("r2plus1d_18", _network, [Conv2Plus1D] * 4, R2Plus1dStem)
