"""Boxes: N x 4, left, top, right, bottom."""

from __future__ import annotations

import torch

__all__ = [
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes_to_image",
    "complete_box_iou",
    "distance_box_iou",
    "generalized_box_iou",
    "masks_to_boxes",
    "nms",
    "remove_small_boxes",
]


def box_area(boxes: torch.Tensor) -> torch.Tensor:
    """Of each box."""
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def shared(boxes1: torch.Tensor, boxes2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The area that both boxes cover and the one that either does, for all pairs: N x M."""
    begin = torch.max(boxes1[:, None, :2], boxes2[:, :2])
    end = torch.min(boxes1[:, None, 2:], boxes2[:, 2:])
    both = (end - begin).clamp(min=0).prod(-1)
    return both, box_area(boxes1)[:, None] + box_area(boxes2) - both


def around(boxes1: torch.Tensor, boxes2: torch.Tensor) -> torch.Tensor:
    """Width and height of the smallest box around both, for all pairs: N x M x 2."""
    begin = torch.min(boxes1[:, None, :2], boxes2[:, :2])
    return (torch.max(boxes1[:, None, 2:], boxes2[:, 2:]) - begin).clamp(min=0)


def box_iou(boxes1: torch.Tensor, boxes2: torch.Tensor) -> torch.Tensor:
    """The share that all pairs have in common: N x M."""
    both, either = shared(boxes1, boxes2)
    return both / either


def generalized_box_iou(boxes1: torch.Tensor, boxes2: torch.Tensor) -> torch.Tensor:
    """The same, less what is empty in the box around both."""
    both, either = shared(boxes1, boxes2)
    whole = around(boxes1, boxes2).prod(-1)
    return both / either - (whole - either) / whole


def distance_box_iou(boxes1: torch.Tensor, boxes2: torch.Tensor, eps: float = 1e-7) -> torch.Tensor:
    """The same, less how far their middles are apart."""
    middles = [(boxes[:, :2] + boxes[:, 2:]) / 2 for boxes in (boxes1, boxes2)]
    apart = (middles[0][:, None] - middles[1]).pow(2).sum(-1)
    return box_iou(boxes1, boxes2) - apart / (around(boxes1, boxes2).pow(2).sum(-1) + eps)


def complete_box_iou(boxes1: torch.Tensor, boxes2: torch.Tensor, eps: float = 1e-7) -> torch.Tensor:
    """The same, less how their shapes differ."""
    slopes = [
        torch.atan((boxes[:, 2] - boxes[:, 0]) / (boxes[:, 3] - boxes[:, 1])) for boxes in (boxes1, boxes2)
    ]
    differ = 4 / torch.pi**2 * (slopes[0][:, None] - slopes[1]).pow(2)
    with torch.no_grad():
        share = differ / (1 - box_iou(boxes1, boxes2) + differ + eps)
    return distance_box_iou(boxes1, boxes2, eps) - share * differ


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """The numbers of the boxes that share no more than that with a better one that is kept, best first."""
    order = scores.argsort(descending=True, stable=True)
    better = torch.triu(box_iou(boxes[order], boxes[order]) > iou_threshold, diagonal=1)
    kept = torch.ones_like(order, dtype=torch.bool)
    while True:
        # After each turn at least one more of the first boxes is settled.
        now = ~(better & kept[:, None]).any(0)
        if torch.equal(now, kept):
            return order[kept]
        kept = now


def batched_nms(
    boxes: torch.Tensor, scores: torch.Tensor, idxs: torch.Tensor, iou_threshold: float
) -> torch.Tensor:
    """The same, for each of the classes by itself."""
    if boxes.numel() == 0:
        return torch.empty(0, dtype=torch.int64, device=boxes.device)
    # Boxes of different classes are moved apart.
    return nms(boxes + (idxs.to(boxes) * (boxes.max() + 1))[:, None], scores, iou_threshold)


def clip_boxes_to_image(boxes: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Boxes within a picture of this height and width."""
    limits = boxes.new_tensor([size[1], size[0], size[1], size[0]])
    return torch.min(boxes.clamp(min=0), limits)


def remove_small_boxes(boxes: torch.Tensor, min_size: float) -> torch.Tensor:
    """The numbers of the boxes whose sides are at least that long."""
    return torch.where((boxes[:, 2:] - boxes[:, :2] >= min_size).all(1))[0]


def box_convert(boxes: torch.Tensor, in_fmt: str, out_fmt: str) -> torch.Tensor:
    """From one way of telling a box to another: ``xyxy``, ``xywh``, ``cxcywh``."""
    for fmt in (in_fmt, out_fmt):
        if fmt not in ("xyxy", "xywh", "cxcywh"):
            raise ValueError("Unsupported Bounding Box Conversions for given in_fmt and out_fmt")
    first, second = boxes[..., :2], boxes[..., 2:]
    if in_fmt == "xywh":
        second = first + second
    elif in_fmt == "cxcywh":
        first, second = first - second / 2, first + second / 2
    if out_fmt == "xywh":
        second = second - first
    elif out_fmt == "cxcywh":
        first, second = (first + second) / 2, second - first
    return torch.cat([first, second], -1)


def masks_to_boxes(masks: torch.Tensor) -> torch.Tensor:
    """The box around what is not 0 in each of N x height x width; 0 where there is nothing."""
    found = []
    for mask in masks:
        rows, columns = torch.where(mask != 0)
        if rows.numel():
            found.append(torch.stack([columns.min(), rows.min(), columns.max(), rows.max()]).float())
        else:
            found.append(torch.zeros(4, device=masks.device))
    return torch.stack(found) if found else torch.zeros(0, 4, device=masks.device)
