"""Boxes as what has to be added to others to get them, and which others belong to which objects."""

from __future__ import annotations

import math

import torch

from ...ops.boxes import shared

Factors = tuple[float, float, float, float]
LIMIT = math.log(1000 / 16)
"""By how much a box may grow, so that no exponential gets out of hand."""


def _middles(boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    sides = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1e-3)
    return boxes[..., :2] + sides / 2, sides


def encode(boxes: torch.Tensor, anchors: torch.Tensor, factors: Factors) -> torch.Tensor:
    """How far each box is from its anchor, in its sides, and how many times as large, as a logarithm."""
    (middle, sides), (from_middle, from_sides) = _middles(boxes), _middles(anchors)
    found = torch.cat([(middle - from_middle) / from_sides, torch.log(sides / from_sides)], -1)
    return found * found.new_tensor(factors)


def decode(codes: torch.Tensor, anchors: torch.Tensor, factors: Factors) -> torch.Tensor:
    """The boxes again."""
    codes = codes / codes.new_tensor(factors)
    middle, sides = _middles(anchors)
    middle = middle + codes[..., :2] * sides
    half = torch.exp(codes[..., 2:].clamp(max=LIMIT)) * sides / 2
    return torch.cat([middle - half, middle + half], -1)


class Match:
    """Which of some objects each anchor belongs to.

    ``chosen`` is a number for each anchor, that of the object or of one more object that is nowhere;
    ``is_object`` and ``is_background`` are masks, and neither holds for what is in between.
    """

    def __init__(
        self, objects: torch.Tensor, anchors: torch.Tensor, high: float, low: float, at_least_one: bool
    ) -> None:
        # An object without an extent belongs to nothing, so that there is one where there are none.
        self.objects = torch.cat([objects.to(anchors.dtype), anchors.new_zeros(1, 4)])
        both, either = shared(self.objects, anchors)
        common = both / either.clamp(min=1e-6)
        best, self.chosen = common.max(0)
        self.is_object, self.is_background = best >= high, best < low
        if at_least_one:
            nearest = (common == common.max(1, keepdim=True).values) & (common > 0)
            self.is_object = self.is_object | nearest.any(0)
            self.is_background = self.is_background & ~self.is_object

    @property
    def boxes(self) -> torch.Tensor:
        """The box of each anchor's object."""
        return self.objects[self.chosen]

    def labels(self, labels: torch.Tensor) -> torch.Tensor:
        """The class of each anchor's object; 0 of background."""
        return torch.cat([labels, labels.new_zeros(1)])[self.chosen] * self.is_object


def mean_where(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mean of what the mask holds for, 0 if that is nothing."""
    return (values * mask).sum() / mask.sum().clamp(min=1)
