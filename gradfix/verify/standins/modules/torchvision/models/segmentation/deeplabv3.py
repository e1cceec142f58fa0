"""DeepLab V3: windows that are more and less spread, side by side (https://arxiv.org/abs/1706.05587)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from ._utils import _SimpleSegmentationModel, mobile, named, residual
from .fcn import FCNHead

__all__ = [
    "DeepLabV3",
    "deeplabv3_mobilenet_v3_large",
    "deeplabv3_resnet50",
    "deeplabv3_resnet101",
]


class DeepLabV3(_SimpleSegmentationModel):
    """A network with such a head."""


def _layers(inner: int, outer: int, size: int = 1, rate: int = 1) -> list[nn.Module]:
    around = rate if size == 3 else 0
    layer = nn.Conv2d(inner, outer, size, padding=around, dilation=rate, bias=False)
    return [layer, nn.BatchNorm2d(outer), nn.ReLU()]


class ASPPConv(nn.Sequential):
    """A window that is spread."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(*_layers(in_channels, out_channels, 3, dilation))


class ASPPPooling(nn.Sequential):
    """The mean of the whole picture."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *_layers(in_channels, out_channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """At each place of it."""
        mean = x
        for part in self:
            mean = part(mean)
        return nn.functional.interpolate(mean, size=x.shape[-2:], mode="bilinear", align_corners=False)


class ASPP(nn.Module):
    """Spread windows and the mean side by side."""

    def __init__(self, in_channels: int, atrous_rates: Sequence[int], out_channels: int = 256) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            [
                nn.Sequential(*_layers(in_channels, out_channels)),
                *(ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates),
                ASPPPooling(in_channels, out_channels),
            ]
        )
        self.project = nn.Sequential(*_layers(len(self.convs) * out_channels, out_channels), nn.Dropout(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """With as many channels as each of them has."""
        found: torch.Tensor = self.project(torch.cat([one(x) for one in self.convs], 1))
        return found


class DeepLabHead(nn.Sequential):
    """Such windows and two convolutions."""

    def __init__(
        self, in_channels: int, num_classes: int, atrous_rates: Sequence[int] = (12, 24, 36)
    ) -> None:
        super().__init__(
            ASPP(in_channels, atrous_rates), *_layers(256, 256, 3), nn.Conv2d(256, num_classes, 1)
        )


deeplabv3_resnet50 = named("deeplabv3_resnet50", DeepLabV3, DeepLabHead, FCNHead, residual, "resnet50")
deeplabv3_resnet101 = named("deeplabv3_resnet101", DeepLabV3, DeepLabHead, FCNHead, residual, "resnet101")
deeplabv3_mobilenet_v3_large = named("deeplabv3_mobilenet_v3_large", DeepLabV3, DeepLabHead, FCNHead, mobile)
