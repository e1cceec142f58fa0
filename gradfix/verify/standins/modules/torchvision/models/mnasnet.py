"""MNASNet: blocks that a search has found (https://arxiv.org/abs/1807.11626)."""

from __future__ import annotations

import torch
from torch import nn

from ._api import named
from ._utils import _make_divisible

__all__ = ["MNASNet", "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"]

MOMENTUM = 1 - 0.9997
SETTINGS = (
    (24, 3, 2, 3, 3), (40, 5, 2, 3, 3), (80, 5, 2, 6, 3), (96, 3, 1, 6, 2), (192, 5, 2, 6, 4),
    (320, 3, 1, 6, 1),
)  # fmt: skip
"""Channels, window, stride, how many times as wide within, how many blocks."""


def _layers(inner: int, outer: int, size: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    layer = nn.Conv2d(inner, outer, size, stride, size // 2, groups=groups, bias=False)
    return [layer, nn.BatchNorm2d(outer, momentum=MOMENTUM), nn.ReLU(inplace=True)]


class _InvertedResidual(nn.Module):
    def __init__(self, inner: int, outer: int, size: int, stride: int, ratio: int) -> None:
        super().__init__()
        wide = inner * ratio
        self.apply_residual = inner == outer and stride == 1
        wider = [*_layers(inner, wide), *_layers(wide, wide, size, stride, wide)]
        self.layers = nn.Sequential(*wider, *_layers(wide, outer)[:2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output, with what went in where it fits."""
        found: torch.Tensor = self.layers(x)
        return found + x if self.apply_residual else found


class MNASNet(nn.Module):
    """Six parts of such blocks; ``alpha`` is how many times as wide as usual they are."""

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        self.alpha, self.num_classes = alpha, num_classes
        first, width = _make_divisible(32 * alpha, 8), _make_divisible(16 * alpha, 8)
        parts = [*_layers(3, first, 3, 2), *_layers(first, first, 3, 1, first), *_layers(first, width)[:2]]
        for channels, size, stride, ratio, count in SETTINGS:
            outer = _make_divisible(channels * alpha, 8)
            blocks = [_InvertedResidual(width, outer, size, stride, ratio)]
            blocks += [_InvertedResidual(outer, outer, size, 1, ratio) for _ in range(1, count)]
            parts.append(nn.Sequential(*blocks))
            width = outer
        self.layers = nn.Sequential(*parts, *_layers(width, 1280))
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(1280, num_classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        found: torch.Tensor = self.classifier(self.layers(x).mean([2, 3]))
        return found


mnasnet0_5 = named("mnasnet0_5", MNASNet, 0.5)
mnasnet0_75 = named("mnasnet0_75", MNASNet, 0.75)
mnasnet1_0 = named("mnasnet1_0", MNASNet, 1.0)
mnasnet1_3 = named("mnasnet1_3", MNASNet, 1.3)
