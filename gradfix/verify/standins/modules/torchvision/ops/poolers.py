"""Regions of what a network sees, each brought to one size."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from .boxes import box_area

__all__ = ["MultiScaleRoIAlign", "RoIAlign", "RoIPool", "roi_align", "roi_pool"]

SAMPLES = 2
"""Points along a side of each place, where their number is left to the function; the real one then takes as
many as the region is large."""


def _shares(begin: torch.Tensor, length: torch.Tensor, count: int, samples: int, size: int) -> torch.Tensor:
    """How much of each of ``size`` values there is in each of ``count`` places of a region, between whose
    values it is interpolated: regions x count x size."""
    steps = (torch.arange(count * samples, device=begin.device) + 0.5) / (count * samples)
    points = begin[:, None] + length[:, None] * steps
    inside = (points >= -1) & (points <= size)
    apart = points.clamp(0, size - 1)[..., None] - torch.arange(size, device=begin.device)
    near = (1 - apart.abs()).clamp(min=0) * inside[..., None]
    return near.view(len(begin), count, samples, size).mean(2)


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _by_picture(boxes: Any, count: int) -> tuple[list[torch.Tensor], torch.Tensor | None]:
    """The boxes of each picture, and where each stood if they were one table of K x 5."""
    if not isinstance(boxes, torch.Tensor):
        return list(boxes), None
    places = [torch.where(boxes[:, 0] == number)[0] for number in range(count)]
    return [boxes[place, 1:] for place in places], torch.cat(places).argsort()


def roi_align(
    input: torch.Tensor,
    boxes: Any,
    output_size: Any,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> torch.Tensor:
    """Means of interpolated points of each region: K x channels x ``output_size``.

    ``boxes`` are those of each picture, or K x 5 with the number of the picture first.
    """
    high, wide = _pair(output_size)
    samples = sampling_ratio if sampling_ratio > 0 else SAMPLES
    lists, order = _by_picture(boxes, len(input))
    found = [input.new_zeros(0, input.shape[1], high, wide)]
    for picture, own in zip(input, lists):
        scaled = own.to(input.dtype) * spatial_scale - (0.5 if aligned else 0)
        sides = scaled[:, 2:] - scaled[:, :2]
        sides = sides if aligned else sides.clamp(min=1)
        rows = _shares(scaled[:, 1], sides[:, 1], high, samples, picture.shape[1])
        columns = _shares(scaled[:, 0], sides[:, 0], wide, samples, picture.shape[2])
        found.append(torch.einsum("kph,chw,kqw->kcpq", rows, picture, columns))
    whole = torch.cat(found)
    return whole if order is None else whole[order]


def roi_pool(input: torch.Tensor, boxes: Any, output_size: Any, spatial_scale: float = 1.0) -> torch.Tensor:
    """The largest values of each region: K x channels x ``output_size``."""
    size = _pair(output_size)
    lists, order = _by_picture(boxes, len(input))
    found = [input.new_zeros(0, input.shape[1], *size)]
    for picture, own in zip(input, lists):
        high, wide = picture.shape[1:]
        for left, top, right, bottom in (own * spatial_scale).round().long().tolist():
            left, top = min(max(left, 0), wide - 1), min(max(top, 0), high - 1)
            part = picture[:, top : max(bottom, top) + 1, left : max(right, left) + 1]
            found.append(nn.functional.adaptive_max_pool2d(part, size)[None])
    whole = torch.cat(found)
    return whole if order is None else whole[order]


class RoIAlign(nn.Module):
    """:func:`roi_align` as a layer."""

    def __init__(
        self, output_size: Any, spatial_scale: float, sampling_ratio: int, aligned: bool = False
    ) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input: torch.Tensor, rois: Any) -> torch.Tensor:
        """K x channels x ``output_size``."""
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)


class RoIPool(nn.Module):
    """:func:`roi_pool` as a layer."""

    def __init__(self, output_size: Any, spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: torch.Tensor, rois: Any) -> torch.Tensor:
        """K x channels x ``output_size``."""
        return roi_pool(input, rois, self.output_size, self.spatial_scale)


class MultiScaleRoIAlign(nn.Module):
    """Regions of several maps of a picture: the larger a region is, the smaller the map that it is taken of.

    Each region is taken of all maps, and those that are not meant count nothing.
    """

    def __init__(
        self,
        featmap_names: list[str],
        output_size: Any,
        sampling_ratio: int,
        *,
        canonical_scale: int = 224,
        canonical_level: int = 4,
    ) -> None:
        super().__init__()
        self.featmap_names, self.sampling_ratio = featmap_names, sampling_ratio
        self.output_size = _pair(output_size)
        self.canonical_scale, self.canonical_level = canonical_scale, canonical_level

    def forward(
        self, x: dict[str, torch.Tensor], boxes: list[torch.Tensor], image_shapes: list[tuple[int, int]]
    ) -> torch.Tensor:
        """K x channels x ``output_size``."""
        maps = [one for name, one in x.items() if name in self.featmap_names]
        largest = max(shape[0] for shape in image_shapes)
        levels = [round(math.log2(largest / one.shape[-2])) for one in maps]
        sides = box_area(torch.cat(boxes)).clamp(min=1e-6).sqrt()
        meant = (self.canonical_level + torch.log2(sides / self.canonical_scale) + 1e-6).floor()
        meant = meant.clamp(levels[0], levels[-1])
        found = torch.zeros(())
        for level, one in zip(levels, maps):
            taken = roi_align(one, boxes, self.output_size, 2.0**-level, self.sampling_ratio)
            found = found + taken * (meant == level)[:, None, None, None]
        return found
