"""Convolutions whose windows are bent (https://arxiv.org/abs/1703.06211)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

__all__ = ["DeformConv2d", "deform_conv2d"]


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def deform_conv2d(
    input: torch.Tensor,
    offset: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """A convolution each of whose points is moved.

    ``offset`` is batch x (parts x points x 2) x height x width, rows before columns, and ``mask``, by which
    the points are multiplied, batch x (parts x points) x height x width. Each part moves its own channels.
    """
    batch, channels, tall, broad = input.shape
    high, wide = offset.shape[-2:]
    window = weight.shape[-2:]
    points = window[0] * window[1]
    moves = offset.view(batch, -1, points, 2, high, wide)
    parts = moves.shape[1]
    places = []
    for axis, size in enumerate((high, wide)):
        start = torch.arange(size, device=input.device) * _pair(stride)[axis] - _pair(padding)[axis]
        steps = torch.arange(window[axis], device=input.device) * _pair(dilation)[axis]
        shape = (window[0], 1, high, 1) if axis == 0 else (1, window[1], 1, wide)
        grid = (start[None] + steps[:, None]).view(shape).expand(*window, high, wide)
        place = moves[:, :, :, axis] + grid.reshape(points, high, wide)
        # From pixels to numbers from -1 at one edge of the picture to 1 at the other.
        places.append((2 * place + 1) / (tall, broad)[axis] - 1)
    where = torch.stack(places[::-1], -1).view(batch * parts, points * high, wide, 2)
    own = input.reshape(batch * parts, channels // parts, tall, broad)
    seen = nn.functional.grid_sample(own, where, align_corners=False)
    seen = seen.view(batch, parts, channels // parts, points, high, wide)
    if mask is not None:
        seen = seen * mask.view(batch, parts, 1, points, high, wide)
    groups = channels // weight.shape[1]
    seen = seen.view(batch, groups, channels // groups, points, high, wide)
    found = torch.einsum("bgcpxy,gocp->bgoxy", seen, weight.view(groups, -1, channels // groups, points))
    found = found.reshape(batch, -1, high, wide)
    return found if bias is None else found + bias[:, None, None]


class DeformConv2d(nn.Module):
    """:func:`deform_conv2d` as a layer, which is told how its points move."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = _pair(kernel_size), _pair(stride)
        self.padding, self.dilation = _pair(padding), _pair(dilation)
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels // groups, *self.kernel_size))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, input: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Batch x channels x height x width."""
        settings = (self.stride, self.padding, self.dilation)
        return deform_conv2d(input, offset, self.weight, self.bias, *settings, mask)
