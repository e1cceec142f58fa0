"""timm.loss: cross entropies."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ...inert import others

__getattr__ = others(__name__)


class LabelSmoothingCrossEntropy(nn.Module):
    """Between a class and all of them."""

    def __init__(self, smoothing: float = 0.1) -> None:
        super().__init__()
        self.smoothing = smoothing

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Of a batch."""
        said = torch.log_softmax(x, dim=-1)
        own = -said.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
        return ((1 - self.smoothing) * own - self.smoothing * said.mean(dim=-1)).mean()


class SoftTargetCrossEntropy(nn.Module):
    """Of classes with shares."""

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Of a batch."""
        return torch.sum(-target * torch.log_softmax(x, dim=-1), dim=-1).mean()


class JsdCrossEntropy(nn.Module):
    """Of the first of several views of a batch, and of what they differ in."""

    def __init__(self, num_splits: int = 3, alpha: float = 12, smoothing: float = 0.1) -> None:
        super().__init__()
        self.num_splits, self.alpha = num_splits, alpha
        self.first: Any = LabelSmoothingCrossEntropy(smoothing or 0.0)

    def forward(self, output: Any, target: torch.Tensor) -> Any:
        """Of a batch."""
        count = len(output) // self.num_splits
        views = torch.stack([one.softmax(1) for one in output.split(count)])
        mean = views.mean(0).clamp(1e-7, 1).log()
        apart = sum(nn.functional.kl_div(mean, one, reduction="batchmean") for one in views)
        return self.first(output[:count], target[:count]) + self.alpha * apart / len(views)
