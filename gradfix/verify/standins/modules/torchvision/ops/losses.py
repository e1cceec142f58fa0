"""Losses of scores that are mostly 0, and of boxes."""

from __future__ import annotations

from typing import Any

import torch

from . import boxes as of_boxes

__all__ = [
    "complete_box_iou_loss",
    "distance_box_iou_loss",
    "generalized_box_iou_loss",
    "sigmoid_focal_loss",
]


def _reduced(loss: torch.Tensor, reduction: str) -> torch.Tensor:
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" and loss.numel() else loss.sum()


def sigmoid_focal_loss(
    inputs: torch.Tensor,
    targets: torch.Tensor,
    alpha: float = 0.25,
    gamma: float = 2,
    reduction: str = "none",
) -> torch.Tensor:
    """The cross entropy of two classes, less of what is easy (https://arxiv.org/abs/1708.02002)."""
    share = torch.sigmoid(inputs)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = loss * (1 - (share * targets + (1 - share) * (1 - targets))) ** gamma
    if alpha >= 0:
        loss = loss * (alpha * targets + (1 - alpha) * (1 - targets))
    return _reduced(loss, reduction)


def _loss(measure: Any) -> Any:
    def loss(
        boxes1: torch.Tensor, boxes2: torch.Tensor, reduction: str = "none", eps: float = 1e-7
    ) -> torch.Tensor:
        """One less what each box has in common with the one at its place in the other list."""
        return _reduced(1 - measure(boxes1, boxes2).diagonal(), reduction)

    return loss


generalized_box_iou_loss = _loss(of_boxes.generalized_box_iou)
distance_box_iou_loss = _loss(of_boxes.distance_box_iou)
complete_box_iou_loss = _loss(of_boxes.complete_box_iou)
