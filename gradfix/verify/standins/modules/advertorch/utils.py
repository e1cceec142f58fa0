"""Sizes of changes, and a layer that brings pictures to a mean and a deviation."""

from __future__ import annotations

from typing import Any

import torch

from ...inert import others


def longest(change: torch.Tensor, order: float) -> torch.Tensor:
    """How large the change of each sample is by a norm, in a shape by which it can be divided."""
    sizes: torch.Tensor = change.flatten(1).norm(order, dim=1).clamp(min=1e-6)
    return sizes.view(-1, *[1] * (change.dim() - 1))


def normalized(change: torch.Tensor, order: float) -> torch.Tensor:
    """A change of each sample that is of size 1."""
    return change / longest(change, order)


def predict_from_logits(logits: torch.Tensor, dim: int = 1) -> torch.Tensor:
    """The classes of the highest scores."""
    return logits.max(dim=dim)[1]


class NormalizeByChannelMeanStd(torch.nn.Module):
    """Pictures with one mean and deviation for each colour."""

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__()
        self.mean: torch.Tensor
        self.std: torch.Tensor
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("std", torch.as_tensor(std))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        """One batch of them."""
        mean, std = (one.view(-1, 1, 1) for one in (self.mean, self.std))
        return (tensor - mean) / std


__getattr__ = others(__name__)
