"""Regions in which there may be something (https://arxiv.org/abs/1506.01497)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ...ops.boxes import clip_boxes_to_image
from ...ops.misc import Conv2dNormActivation
from ._utils import Match, decode, encode, mean_where
from .anchor_utils import AnchorGenerator
from .image_list import ImageList

__all__ = ["AnchorGenerator", "RPNHead", "RegionProposalNetwork"]

functional = nn.functional
REGIONS = 32
"""Regions of a picture that are looked at; the real network draws 512 of the best 2,000."""
FACTORS = (1.0, 1.0, 1.0, 1.0)


def in_rows(scores: torch.Tensor, values: int) -> torch.Tensor:
    """Batch x (anchors x values) x height x width as batch x (height x width x anchors) x values."""
    batch, channels, high, wide = scores.shape
    apart = scores.view(batch, channels // values, values, high, wide)
    return apart.permute(0, 3, 4, 1, 2).reshape(batch, -1, values)


class RPNHead(nn.Module):
    """Whether there is something in each anchor, and how its box differs."""

    def __init__(self, in_channels: int, num_anchors: int, conv_depth: int = 1) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            *(Conv2dNormActivation(in_channels, in_channels, 3, norm_layer=None) for _ in range(conv_depth))
        )
        self.cls_logits = nn.Conv2d(in_channels, num_anchors, 1)
        self.bbox_pred = nn.Conv2d(in_channels, num_anchors * 4, 1)

    def forward(self, x: list[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Of each map."""
        seen = [self.conv(one) for one in x]
        return [self.cls_logits(one) for one in seen], [self.bbox_pred(one) for one in seen]


class RegionProposalNetwork(nn.Module):
    """The regions with the best scores.

    It is simplified: regions that cover each other are all kept, and all anchors count in the losses.
    """

    def __init__(
        self,
        anchor_generator: Any,
        head: Any,
        fg_iou_thresh: float = 0.7,
        bg_iou_thresh: float = 0.3,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.anchor_generator, self.head = anchor_generator, head
        self.fg_iou_thresh, self.bg_iou_thresh = fg_iou_thresh, bg_iou_thresh

    def forward(
        self, images: ImageList, features: dict[str, torch.Tensor], targets: Any = None
    ) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
        """The regions of each picture, N x 4, and in training the losses."""
        maps = list(features.values())
        scores_of_maps, codes_of_maps = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        scores = torch.cat([in_rows(one, 1) for one in scores_of_maps], 1).squeeze(-1)
        codes = torch.cat([in_rows(one, 4) for one in codes_of_maps], 1)
        regions = []
        for own, score, code, size in zip(anchors, scores.detach(), codes.detach(), images.image_sizes):
            best = score.topk(min(REGIONS, len(score))).indices
            regions.append(clip_boxes_to_image(decode(code[best], own[best], FACTORS), size))
        if not self.training:
            return regions, {}
        return regions, self.losses(anchors, scores, codes, targets)

    def losses(
        self, anchors: list[torch.Tensor], scores: torch.Tensor, codes: torch.Tensor, targets: Any
    ) -> dict[str, torch.Tensor]:
        """How well anchors with objects are told from others, and how well their boxes are known."""
        matches = [
            Match(target["boxes"], own, self.fg_iou_thresh, self.bg_iou_thresh, True)
            for target, own in zip(targets, anchors)
        ]
        found = torch.stack([one.is_object for one in matches])
        nothing = torch.stack([one.is_background for one in matches])
        wanted = torch.stack([encode(one.boxes, own, FACTORS) for one, own in zip(matches, anchors)])
        wrong = functional.binary_cross_entropy_with_logits(scores, found.to(scores), reduction="none")
        apart = functional.smooth_l1_loss(codes, wanted, beta=1 / 9, reduction="none").sum(-1)
        return {
            "loss_objectness": (mean_where(wrong, found) + mean_where(wrong, nothing)) / 2,
            "loss_rpn_box_reg": mean_where(apart, found),
        }
