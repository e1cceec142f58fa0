"""Residual networks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ....context import run
from ....weights import blocks
from ._api import Addresses

__all__ = ["BasicBlock", "Bottleneck", "ResNet", "conv1x1", "conv3x3"]

model_urls = Addresses()


def conv3x3(inner: int, outer: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """A convolution of 3 x 3 that keeps the size."""
    return nn.Conv2d(inner, outer, 3, stride, dilation, dilation, groups, bias=False)


def conv1x1(inner: int, outer: int, stride: int = 1) -> nn.Conv2d:
    """A convolution of 1 x 1."""
    return nn.Conv2d(inner, outer, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions and what went into them."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Any = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Any = None,
    ):
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + (x if self.downsample is None else self.downsample(x))
        found: torch.Tensor = self.relu(out)
        return found


class Bottleneck(nn.Module):
    """Three convolutions and what went into them."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Any = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out = out + (x if self.downsample is None else self.downsample(x))
        found: torch.Tensor = self.relu(out)
        return found


class ResNet(nn.Module):
    """A residual network."""

    def __init__(
        self,
        block: Any,
        layers: Any,
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Any = None,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        self.inplanes = 64
        self.groups, self.base_width, self.dilation = groups, width_per_group, 1
        self._norm_layer = norm_layer or nn.BatchNorm2d
        spread = replace_stride_with_dilation or (False, False, False)
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, spread[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, spread[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, spread[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _make_layer(
        self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        before = self.dilation
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, planes * block.expansion, stride),
                self._norm_layer(planes * block.expansion),
            )
        extra = (self.groups, self.base_width) if block.expansion == 4 else ()
        # A script's own block need not take what is as usual.
        norm = {} if self._norm_layer is nn.BatchNorm2d else {"norm_layer": self._norm_layer}
        first, rest = ({} if apart == 1 else {"dilation": apart} for apart in (before, self.dilation))
        made = [block(self.inplanes, planes, stride, downsample, *extra, **first, **norm)]
        self.inplanes = planes * block.expansion
        made += [block(self.inplanes, planes, 1, None, *extra, **rest, **norm) for _ in range(1, blocks)]
        return nn.Sequential(*made)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        found: torch.Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return found


def _maker(name: str, block: Any, layers: list[int], **more: Any) -> Any:
    def make(*args: Any, **kwargs: Any) -> ResNet:
        if kwargs.pop("pretrained", None) or kwargs.pop("weights", None) or any(args):
            run().used("weights of " + name, "those that it is made with")
        kwargs.pop("progress", None)
        return ResNet(block, blocks(run(), name, layers), **more, **kwargs)

    make.__name__ = name
    __all__.append(name)
    return make


resnet18 = _maker("resnet18", BasicBlock, [2, 2, 2, 2])
resnet34 = _maker("resnet34", BasicBlock, [3, 4, 6, 3])
resnet50 = _maker("resnet50", Bottleneck, [3, 4, 6, 3])
resnet101 = _maker("resnet101", Bottleneck, [3, 4, 23, 3])
resnet152 = _maker("resnet152", Bottleneck, [3, 8, 36, 3])
resnext50_32x4d = _maker("resnext50_32x4d", Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4)
resnext101_32x8d = _maker("resnext101_32x8d", Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=8)
resnext101_64x4d = _maker("resnext101_64x4d", Bottleneck, [3, 4, 23, 3], groups=64, width_per_group=4)
wide_resnet50_2 = _maker("wide_resnet50_2", Bottleneck, [3, 4, 6, 3], width_per_group=128)
wide_resnet101_2 = _maker("wide_resnet101_2", Bottleneck, [3, 4, 23, 3], width_per_group=128)
