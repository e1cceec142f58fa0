"""MobileNet V3: blocks of V2 whose channels are scaled (https://arxiv.org/abs/1905.02244)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import nn

from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ._api import named
from ._utils import _make_divisible

__all__ = ["MobileNetV3", "mobilenet_v3_large", "mobilenet_v3_small"]

LARGE = (
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2),
    (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1),
    (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
    (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1),
)  # fmt: skip
SMALL = (
    (3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2),
    (5, 240, 40, 1, 1, 1), (5, 240, 40, 1, 1, 1), (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1),
    (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1), (5, 576, 96, 1, 1, 1),
)  # fmt: skip
"""Window, channels within and after, whether channels are scaled, whether by hard swish, stride: tables 1
and 2 of the paper."""
DILATED = 3
"""Blocks at the end that keep height and width in a dilated network."""


class Block(NamedTuple):
    """What is known of a block."""

    inner: int
    size: int
    wide: int
    outer: int
    scaled: bool
    hard: bool
    stride: int
    dilation: int


class InvertedResidual(nn.Module):
    """Wider within than at its ends."""

    def __init__(self, cnf: Block, norm_layer: Any, **kwargs: Any) -> None:
        super().__init__()
        activation: Any = nn.Hardswish if cnf.hard else nn.ReLU
        stride = 1 if cnf.dilation > 1 else cnf.stride
        self.use_res_connect = cnf.stride == 1 and cnf.inner == cnf.outer
        self.out_channels, self._is_cn = cnf.outer, cnf.stride > 1
        layer = functools.partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=activation)
        parts: list[nn.Module] = [layer(cnf.inner, cnf.wide, 1)] if cnf.wide != cnf.inner else []
        parts.append(layer(cnf.wide, cnf.wide, cnf.size, stride, groups=cnf.wide, dilation=cnf.dilation))
        if cnf.scaled:
            few = _make_divisible(cnf.wide // 4, 8)
            parts.append(SqueezeExcitation(cnf.wide, few, scale_activation=nn.Hardsigmoid))
        ends = Conv2dNormActivation(cnf.wide, cnf.outer, 1, norm_layer=norm_layer, activation_layer=None)
        self.block = nn.Sequential(*parts, ends)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output, with what went in where it fits."""
        found: torch.Tensor = self.block(x)
        return found + x if self.use_res_connect else found


class MobileNetV3(nn.Module):
    """Such blocks, and two layers at the end."""

    def __init__(
        self,
        inverted_residual_setting: list[Block],
        last_channel: int,
        num_classes: int = 1000,
        block: Any = InvertedResidual,
        norm_layer: Any = None,
        dropout: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        norm = norm_layer or functools.partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        layer = functools.partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.Hardswish)
        setting = inverted_residual_setting
        inner = setting[-1].outer
        self.features = nn.Sequential(
            layer(3, setting[0].inner, 3, 2),
            *(block(one, norm) for one in setting),
            layer(inner, 6 * inner, 1),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * inner, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        found: torch.Tensor = self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))
        return found


def _network(
    plan: Any,
    last: int,
    *,
    width_mult: float = 1.0,
    reduced_tail: bool = False,
    dilated: bool = False,
    **kwargs: Any,
) -> MobileNetV3:
    setting, inner = [], _make_divisible(16 * width_mult, 8)
    divided = 2 if reduced_tail else 1
    for number, (size, wide, outer, scaled, hard, stride) in enumerate(plan, DILATED - len(plan)):
        part = divided if number >= 0 else 1
        outer = _make_divisible(outer // part * width_mult, 8)
        wide = _make_divisible(wide // (part if number > 0 else 1) * width_mult, 8)
        apart = 2 if dilated and number >= 0 else 1
        setting.append(Block(inner, size, wide, outer, bool(scaled), bool(hard), stride, apart))
        inner = outer
    return MobileNetV3(setting, _make_divisible(last // divided * width_mult, 8), **kwargs)


mobilenet_v3_large = named("mobilenet_v3_large", _network, LARGE, 1280)
mobilenet_v3_small = named("mobilenet_v3_small", _network, SMALL, 1024)
