"""RegNet: residual networks whose widths follow a rule (https://arxiv.org/abs/2003.13678)."""

from __future__ import annotations

import functools
import itertools
import math
from collections import OrderedDict
from typing import Any, NamedTuple

import torch
from torch import nn

from ....context import run
from ....weights import blocks
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ._api import named
from ._utils import _make_divisible

__all__ = ["RegNet"]

RULES = {
    "x_400mf": (22, 24, 24.48, 2.54, 16), "x_800mf": (16, 56, 35.73, 2.28, 16),
    "x_1_6gf": (18, 80, 34.01, 2.25, 24), "x_3_2gf": (25, 88, 26.31, 2.25, 48),
    "x_8gf": (23, 80, 49.56, 2.88, 120), "x_16gf": (22, 216, 55.59, 2.1, 128),
    "x_32gf": (23, 320, 69.86, 2.0, 168), "y_400mf": (16, 48, 27.89, 2.09, 8),
    "y_800mf": (14, 56, 38.84, 2.4, 16), "y_1_6gf": (27, 48, 20.71, 2.65, 24),
    "y_3_2gf": (21, 80, 42.63, 2.66, 24), "y_8gf": (17, 192, 76.82, 2.19, 56),
    "y_16gf": (18, 200, 106.23, 2.48, 112), "y_32gf": (20, 232, 115.89, 2.53, 232),
}  # fmt: skip
"""Depth, first width, slope, quantum, width of a group (the paper's appendix). ``y`` scales channels."""


class Part(NamedTuple):
    """Some blocks of one width."""

    width: int
    groups: int
    depth: int


def parts(rule: tuple[int, int, float, float, int]) -> list[Part]:
    """The parts of a network that follow from its rule."""
    depth, first, slope, quantum, group = rule
    steps = (round(math.log((first + slope * one) / first) / math.log(quantum)) for one in range(depth))
    widths = [round(first * quantum**step / 8) * 8 for step in steps]
    made = []
    for width, same in itertools.groupby(widths):
        within = min(group, width)
        whole = _make_divisible(width, within)
        made.append(Part(whole, whole // within, len(list(same))))
    return made


class ResBottleneckBlock(nn.Module):
    """Three convolutions and what went into them."""

    def __init__(self, inner: int, outer: int, stride: int, groups: int, squeeze: float) -> None:
        super().__init__()
        fits = inner == outer and stride == 1
        plain = functools.partial(Conv2dNormActivation, activation_layer=None)
        self.proj = None if fits else plain(inner, outer, 1, stride)
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            a=Conv2dNormActivation(inner, outer, 1),
            b=Conv2dNormActivation(outer, outer, 3, stride, groups=groups),
        )
        if squeeze:
            within = functools.partial(nn.ReLU, inplace=True)
            layers["se"] = SqueezeExcitation(outer, round(squeeze * inner), activation=within)
        layers["c"] = plain(outer, outer, 1)
        self.f = nn.Sequential(layers)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        found: torch.Tensor = self.activation((x if self.proj is None else self.proj(x)) + self.f(x))
        return found


class RegNet(nn.Module):
    """Parts of such blocks."""

    def __init__(self, made_of: list[Part], squeeze: float, num_classes: int = 1000) -> None:
        super().__init__()
        self.stem = Conv2dNormActivation(3, 32, 3, 2)
        width = 32
        stages: OrderedDict[str, nn.Module] = OrderedDict()
        for index, part in enumerate(made_of, 1):
            made: OrderedDict[str, nn.Module] = OrderedDict()
            for number in range(part.depth):
                stride = 1 if number else 2
                made[f"block{index}-{number}"] = ResBottleneckBlock(
                    width, part.width, stride, part.groups, squeeze
                )
                width = part.width
            stages[f"block{index}"] = nn.Sequential(made)
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        found: torch.Tensor = self.fc(self.avgpool(self.trunk_output(self.stem(x))).flatten(1))
        return found


def _network(name: str, **kwargs: Any) -> RegNet:
    made = parts(RULES[name])
    counts = blocks(run(), "regnet_" + name, [part.depth for part in made])
    kept = [part._replace(depth=count) for part, count in zip(made, counts)]
    return RegNet(kept, 0.25 if name[0] == "y" else 0.0, **kwargs)


for _name in RULES:
    globals()["regnet_" + _name] = named("regnet_" + _name, _network, _name)
    __all__.append("regnet_" + _name)
