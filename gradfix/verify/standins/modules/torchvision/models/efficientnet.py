"""EfficientNet, and its second version (https://arxiv.org/abs/1905.11946, https://arxiv.org/abs/2104.00298)."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import torch
from torch import nn

from ....context import run
from ....weights import blocks
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation, StochasticDepth
from ._api import named
from ._utils import _make_divisible

__all__ = ["EfficientNet", "FusedMBConv", "MBConv"]

FIRST = (
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4), (6, 3, 1, 320, 1),
)  # fmt: skip
"""How many times as wide within, window, stride, channels, how many blocks: table 1 of the first paper."""
SCALED = {
    "b0": (1.0, 1.0, 0.2), "b1": (1.0, 1.1, 0.2), "b2": (1.1, 1.2, 0.3), "b3": (1.2, 1.4, 0.3),
    "b4": (1.4, 1.8, 0.4), "b5": (1.6, 2.2, 0.4), "b6": (1.8, 2.6, 0.5), "b7": (2.0, 3.1, 0.5),
}  # fmt: skip
"""How many times as wide and as deep they are, and their dropout."""
SECOND: dict[str, tuple[int, int, float, tuple[tuple[int, int, int, int, int], ...]]] = {
    "v2_s": (24, 3, 0.2, (
        (1, 3, 1, 24, 2), (4, 3, 2, 48, 4), (4, 3, 2, 64, 4), (4, 3, 2, 128, 6), (6, 3, 1, 160, 9),
        (6, 3, 2, 256, 15),
    )),
    "v2_m": (24, 3, 0.3, (
        (1, 3, 1, 24, 3), (4, 3, 2, 48, 5), (4, 3, 2, 80, 5), (4, 3, 2, 160, 7), (6, 3, 1, 176, 14),
        (6, 3, 2, 304, 18), (6, 3, 1, 512, 5),
    )),
    "v2_l": (32, 3, 0.4, (
        (1, 3, 1, 32, 4), (4, 3, 2, 64, 7), (4, 3, 2, 96, 7), (4, 3, 2, 192, 10), (6, 3, 1, 224, 19),
        (6, 3, 2, 384, 25), (6, 3, 1, 640, 7),
    )),
}  # fmt: skip
"""Channels of the first layer, how many parts have fused blocks, dropout, and the parts."""


class Block(NamedTuple):
    """What is known of a block."""

    fused: bool
    ratio: int
    size: int
    stride: int
    inner: int
    outer: int


class _Residual(nn.Module):
    """A block to which what went in is added where it fits; whole samples may be left out of it."""

    def __init__(self, cnf: Block, stochastic_depth_prob: float, norm_layer: Any) -> None:
        super().__init__()
        self.use_res_connect = cnf.stride == 1 and cnf.inner == cnf.outer
        layer = functools.partial(Conv2dNormActivation, norm_layer=norm_layer)
        self.block = nn.Sequential(*self._parts(cnf, _make_divisible(cnf.inner * cnf.ratio, 8), layer))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.outer

    def _parts(self, cnf: Block, wide: int, layer: Any) -> list[nn.Module]:
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        found: torch.Tensor = self.block(x)
        return self.stochastic_depth(found) + x if self.use_res_connect else found


class MBConv(_Residual):
    """Wider within than at its ends, with scaled channels."""

    def _parts(self, cnf: Block, wide: int, layer: Any) -> list[nn.Module]:
        wider = [layer(cnf.inner, wide, 1, activation_layer=nn.SiLU)] if wide != cnf.inner else []
        within = functools.partial(nn.SiLU, inplace=True)
        return [
            *wider,
            layer(wide, wide, cnf.size, cnf.stride, groups=wide, activation_layer=nn.SiLU),
            SqueezeExcitation(wide, max(1, cnf.inner // 4), activation=within),
            layer(wide, cnf.outer, 1, activation_layer=None),
        ]


class FusedMBConv(_Residual):
    """The same with one convolution that goes through all channels."""

    def _parts(self, cnf: Block, wide: int, layer: Any) -> list[nn.Module]:
        if wide == cnf.inner:
            return [layer(cnf.inner, cnf.outer, cnf.size, cnf.stride, activation_layer=nn.SiLU)]
        return [
            layer(cnf.inner, wide, cnf.size, cnf.stride, activation_layer=nn.SiLU),
            layer(wide, cnf.outer, 1, activation_layer=None),
        ]


class EfficientNet(nn.Module):
    """Parts of equal blocks, between two convolutions."""

    def __init__(
        self,
        inverted_residual_setting: list[list[Block]],
        dropout: float,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: Any = None,
        last_channel: int | None = None,
    ) -> None:
        super().__init__()
        setting = inverted_residual_setting
        norm = norm_layer or nn.BatchNorm2d
        layer = functools.partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.SiLU)
        inner, number, total = setting[-1][-1].outer, 0, sum(map(len, setting))
        last = last_channel or 4 * inner
        parts: list[nn.Module] = [layer(3, setting[0][0].inner, 3, 2)]
        for stage in setting:
            made: list[nn.Module] = []
            for one in stage:
                kind = FusedMBConv if one.fused else MBConv
                made.append(kind(one, stochastic_depth_prob * number / total, norm))
                number += 1
            parts.append(nn.Sequential(*made))
        self.features = nn.Sequential(*parts, layer(inner, last, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(last, num_classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        found: torch.Tensor = self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))
        return found


def _setting(name: str, inner: int, fused: int, rows: Any) -> list[list[Block]]:
    """The blocks of each part; ``fused`` is how many parts have fused ones."""
    counts = blocks(run(), "efficientnet_" + name, [row[-1] for row in rows])
    made = []
    for number, ((ratio, size, stride, outer, _), count) in enumerate(zip(rows, counts)):
        first = Block(number < fused, ratio, size, stride, inner, outer)
        made.append([first, *[first._replace(stride=1, inner=outer)] * (count - 1)])
        inner = outer
    return made


def _first(name: str, **kwargs: Any) -> EfficientNet:
    wide, deep, dropout = SCALED[name]
    rows = [(*row[:3], _make_divisible(row[3] * wide, 8), math.ceil(row[4] * deep)) for row in FIRST]
    if name in ("b5", "b6", "b7"):
        kwargs.setdefault("norm_layer", functools.partial(nn.BatchNorm2d, eps=0.001, momentum=0.01))
    setting = _setting(name, _make_divisible(32 * wide, 8), 0, rows)
    return EfficientNet(setting, **{"dropout": dropout, **kwargs})


def _second(name: str, **kwargs: Any) -> EfficientNet:
    inner, fused, dropout, rows = SECOND[name]
    kwargs.setdefault("norm_layer", functools.partial(nn.BatchNorm2d, eps=0.001))
    return EfficientNet(
        _setting(name, inner, fused, rows), **{"dropout": dropout, "last_channel": 1280, **kwargs}
    )


for _name in (*SCALED, *SECOND):
    _whole = "efficientnet_" + _name
    globals()[_whole] = named(_whole, _first if _name in SCALED else _second, _name)
    __all__.append(_whole)
