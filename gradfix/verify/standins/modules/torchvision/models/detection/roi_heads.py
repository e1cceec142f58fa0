"""What is in each region of a picture."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ...ops.boxes import batched_nms, clip_boxes_to_image, remove_small_boxes
from ...ops.poolers import roi_align
from ._utils import Match, decode, encode, mean_where

functional = nn.functional
FACTORS = (10.0, 10.0, 5.0, 5.0)


class RoIHeads(nn.Module):
    """The class and the box of each region, and the outline of what is in it if there is a head for it.

    It is simplified: all regions count in the losses, not those alone that are drawn by chance, and outlines
    are learnt in the boxes of the objects.
    """

    def __init__(
        self,
        box_roi_pool: Any,
        box_head: Any,
        box_predictor: Any,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 100,
        mask_roi_pool: Any = None,
        mask_head: Any = None,
        mask_predictor: Any = None,
    ) -> None:
        super().__init__()
        self.box_roi_pool, self.box_head, self.box_predictor = box_roi_pool, box_head, box_predictor
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img = detections_per_img
        self.mask_roi_pool, self.mask_head, self.mask_predictor = mask_roi_pool, mask_head, mask_predictor

    def forward(
        self,
        features: dict[str, torch.Tensor],
        proposals: list[torch.Tensor],
        image_shapes: Any,
        targets: Any,
    ) -> tuple[list[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
        """What is found in each picture, or the losses in training."""
        if self.training:
            # The objects' own boxes are regions, too, so that there are some that fit.
            proposals = [torch.cat([one, t["boxes"].to(one)]) for one, t in zip(proposals, targets)]
        scores, codes = self.box_predictor(
            self.box_head(self.box_roi_pool(features, proposals, image_shapes))
        )
        if not self.training:
            found = self.found(scores, codes, proposals, image_shapes)
            if self.mask_predictor is not None:
                self.outline(found, features, image_shapes)
            return found, {}
        losses = self.losses(scores, codes, proposals, targets)
        if self.mask_predictor is not None:
            losses["loss_mask"] = self.mask_loss(features, image_shapes, targets)
        return [], losses

    def losses(
        self, scores: torch.Tensor, codes: torch.Tensor, regions: list[torch.Tensor], targets: Any
    ) -> dict[str, torch.Tensor]:
        """How well classes and boxes are known."""
        matches = [Match(target["boxes"], own, 0.5, 0.5, False) for target, own in zip(targets, regions)]
        labels = torch.cat([one.labels(target["labels"]) for one, target in zip(matches, targets)])
        wanted = torch.cat([encode(one.boxes, own, FACTORS) for one, own in zip(matches, regions)])
        own = codes.view(len(codes), -1, 4)[torch.arange(len(codes), device=codes.device), labels]
        apart = functional.smooth_l1_loss(own, wanted, beta=1 / 9, reduction="none").sum(-1)
        return {
            "loss_classifier": functional.cross_entropy(scores, labels),
            "loss_box_reg": mean_where(apart, labels > 0),
        }

    def masks(self, features: Any, boxes: list[torch.Tensor], image_shapes: Any) -> torch.Tensor:
        """Outlines in boxes, for each class: N x classes x height x width, before they are shares."""
        found: torch.Tensor = self.mask_predictor(
            self.mask_head(self.mask_roi_pool(features, boxes, image_shapes))
        )
        return found

    def mask_loss(self, features: Any, image_shapes: Any, targets: Any) -> torch.Tensor:
        """How well outlines are known."""
        like = next(iter(features.values()))
        boxes = [target["boxes"].to(like) for target in targets]
        labels = torch.cat([target["labels"] for target in targets])
        scores = self.masks(features, boxes, image_shapes)
        own = scores[torch.arange(len(scores), device=scores.device), labels]
        wanted = []
        for target, around in zip(targets, boxes):
            # Each outline is a picture of its own, with one region.
            pictures = target["masks"][:, None].to(like)
            wanted.append(roi_align(pictures, list(around[:, None]), own.shape[-2:])[:, 0])
        wrong = functional.binary_cross_entropy_with_logits(own, torch.cat(wanted), reduction="sum")
        return wrong / max(1, own.numel())

    def found(
        self, scores: torch.Tensor, codes: torch.Tensor, regions: list[torch.Tensor], image_shapes: Any
    ) -> list[dict[str, torch.Tensor]]:
        """Boxes, classes and scores of each picture, the best first."""
        counts = [len(one) for one in regions]
        results = []
        shares, codes = scores.softmax(-1), codes.view(len(codes), -1, 4)
        for share, code, own, size in zip(
            torch.split(shares, counts), torch.split(codes, counts), regions, image_shapes
        ):
            boxes = clip_boxes_to_image(decode(code, own[:, None], FACTORS), size)[:, 1:]
            labels = torch.arange(1, share.shape[1], device=share.device).expand(len(share), -1)
            all_boxes, all_scores, all_labels = boxes.reshape(-1, 4), share[:, 1:].flatten(), labels.flatten()
            likely = torch.where(all_scores > self.score_thresh)[0]
            likely = likely[remove_small_boxes(all_boxes[likely], 0.01)]
            kept = batched_nms(all_boxes[likely], all_scores[likely], all_labels[likely], self.nms_thresh)
            best = likely[kept[: self.detections_per_img]]
            results.append({"boxes": all_boxes[best], "labels": all_labels[best], "scores": all_scores[best]})
        return results

    def outline(self, found: list[dict[str, torch.Tensor]], features: Any, image_shapes: Any) -> None:
        """Put the outlines of what was found beside it."""
        scores = self.masks(features, [one["boxes"] for one in found], image_shapes)
        labels = torch.cat([one["labels"] for one in found])
        own = scores[torch.arange(len(scores), device=scores.device), labels][:, None].sigmoid()
        for one, masks in zip(found, torch.split(own, [len(one["boxes"]) for one in found])):
            one["masks"] = masks
