"""Fully convolutional networks (https://arxiv.org/abs/1411.4038)."""

from __future__ import annotations

from torch import nn

from ._utils import _SimpleSegmentationModel, named, residual

__all__ = ["FCN", "fcn_resnet50", "fcn_resnet101"]


class FCN(_SimpleSegmentationModel):
    """A fully convolutional network."""


class FCNHead(nn.Sequential):
    """Two convolutions."""

    def __init__(self, in_channels: int, channels: int) -> None:
        within = in_channels // 4
        super().__init__(
            nn.Conv2d(in_channels, within, 3, padding=1, bias=False),
            nn.BatchNorm2d(within),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(within, channels, 1),
        )


fcn_resnet50 = named("fcn_resnet50", FCN, FCNHead, FCNHead, residual, "resnet50")
fcn_resnet101 = named("fcn_resnet101", FCN, FCNHead, FCNHead, residual, "resnet101")
