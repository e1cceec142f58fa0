"""RetinaNet: boxes and classes of objects in one step (https://arxiv.org/abs/1708.02002)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from ...ops.boxes import batched_nms, clip_boxes_to_image
from ...ops.feature_pyramid_network import LastLevelP6P7
from ...ops.losses import sigmoid_focal_loss
from ...ops.misc import Conv2dNormActivation
from ._utils import Match, decode, encode, mean_where
from .anchor_utils import AnchorGenerator
from .backbone_utils import resnet_fpn_backbone
from .faster_rcnn import named, norm
from .generalized_rcnn import Detector
from .rpn import FACTORS, in_rows
from .transform import GeneralizedRCNNTransform

__all__ = ["RetinaNet", "RetinaNetClassificationHead", "RetinaNetHead", "retinanet_resnet50_fpn"]

BEST = 100
"""Places of a picture that are looked at; the real network looks at the best 1,000 of each map."""


def _tower(width: int, norm_layer: Any) -> nn.Sequential:
    return nn.Sequential(*(Conv2dNormActivation(width, width, norm_layer=norm_layer) for _ in range(4)))


class RetinaNetClassificationHead(nn.Module):
    """The scores of all classes of each anchor."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        prior_probability: float = 0.01,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        self.conv = _tower(in_channels, norm_layer)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, padding=1)
        self.num_classes, self.num_anchors = num_classes, num_anchors
        # Most anchors hold nothing, and are to say so from the start.
        first = nn.Parameter(torch.full((num_anchors * num_classes,), -math.log(1 / prior_probability - 1)))
        self.cls_logits.bias = first

    def forward(self, x: list[torch.Tensor]) -> torch.Tensor:
        """Batch x anchors x classes."""
        return torch.cat([in_rows(self.cls_logits(self.conv(one)), self.num_classes) for one in x], 1)


class RetinaNetRegressionHead(nn.Module):
    """How the box of each anchor differs."""

    def __init__(self, in_channels: int, num_anchors: int, norm_layer: Any = None) -> None:
        super().__init__()
        self.conv = _tower(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, padding=1)

    def forward(self, x: list[torch.Tensor]) -> torch.Tensor:
        """Batch x anchors x 4."""
        return torch.cat([in_rows(self.bbox_reg(self.conv(one)), 4) for one in x], 1)


class RetinaNetHead(nn.Module):
    """Both."""

    def __init__(self, in_channels: int, num_anchors: int, num_classes: int, norm_layer: Any = None) -> None:
        super().__init__()
        self.classification_head = RetinaNetClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer=norm_layer
        )
        self.regression_head = RetinaNetRegressionHead(in_channels, num_anchors, norm_layer)

    def forward(self, x: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        """By the names of the heads."""
        return {"cls_logits": self.classification_head(x), "bbox_regression": self.regression_head(x)}


class RetinaNet(Detector):
    """RetinaNet, simplified in how what it finds is chosen."""

    def __init__(
        self,
        backbone: Any,
        num_classes: int,
        min_size: Any = 800,
        max_size: int = 1333,
        image_mean: Any = None,
        image_std: Any = None,
        anchor_generator: Any = None,
        head: Any = None,
        proposal_matcher: Any = None,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.4,
        **kwargs: Any,
    ) -> None:
        mean, spread = image_mean or [0.485, 0.456, 0.406], image_std or [0.229, 0.224, 0.225]
        super().__init__(backbone, GeneralizedRCNNTransform(min_size, max_size, mean, spread))
        sizes = tuple(
            (one, int(one * 2 ** (1 / 3)), int(one * 2 ** (2 / 3))) for one in (32, 64, 128, 256, 512)
        )
        self.anchor_generator = anchor_generator or AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * 5)
        anchors = self.anchor_generator.num_anchors_per_location()[0]
        self.head = head or RetinaNetHead(backbone.out_channels, anchors, num_classes)
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img = detections_per_img
        self.fg_iou_thresh, self.bg_iou_thresh = fg_iou_thresh, bg_iou_thresh

    def _found(self, images: Any, features: Any, targets: Any) -> tuple[list[Any], dict[str, torch.Tensor]]:
        maps = list(features.values())
        made = self.head(maps)
        scores, codes = made["cls_logits"], made["bbox_regression"]
        anchors = self.anchor_generator(images, maps)
        if self.training:
            return [], self.losses(scores, codes, anchors, targets)
        return [
            self.chosen(score.sigmoid(), code, own, size)
            for score, code, own, size in zip(scores, codes, anchors, images.image_sizes)
        ], {}

    def losses(
        self, scores: torch.Tensor, codes: torch.Tensor, anchors: list[torch.Tensor], targets: Any
    ) -> dict[str, torch.Tensor]:
        """How well classes and boxes are known, for each object."""
        classes, boxes = [], []
        for score, code, own, target in zip(scores, codes, anchors, targets):
            match = Match(target["boxes"], own, self.fg_iou_thresh, self.bg_iou_thresh, True)
            wanted = nn.functional.one_hot(match.labels(target["labels"]), score.shape[-1]).to(score)
            wrong = sigmoid_focal_loss(score, wanted * match.is_object[:, None])
            counts = (match.is_object | match.is_background)[:, None]
            classes.append((wrong * counts).sum() / match.is_object.sum().clamp(min=1))
            apart = (code - encode(match.boxes, own, FACTORS)).abs().sum(-1)
            boxes.append(mean_where(apart, match.is_object))
        return {"classification": torch.stack(classes).mean(), "bbox_regression": torch.stack(boxes).mean()}

    def chosen(
        self, shares: torch.Tensor, codes: torch.Tensor, anchors: torch.Tensor, size: tuple[int, int]
    ) -> dict[str, torch.Tensor]:
        """Boxes, classes and scores of a picture, the best first."""
        scores, places = shares.flatten().topk(min(BEST, shares.numel()))
        places, scores = places[scores > self.score_thresh], scores[scores > self.score_thresh]
        own, labels = places // shares.shape[1], places % shares.shape[1]
        boxes = clip_boxes_to_image(decode(codes[own], anchors[own], FACTORS), size)
        kept = batched_nms(boxes, scores, labels, self.nms_thresh)[: self.detections_per_img]
        return {"boxes": boxes[kept], "scores": scores[kept], "labels": labels[kept]}


def _network(classes: int, learnt: int, trained: bool, **kwargs: Any) -> RetinaNet:
    backbone = resnet_fpn_backbone(
        "resnet50", trained, norm(trained), learnt, [2, 3, 4], LastLevelP6P7(256, 256)
    )
    return RetinaNet(backbone, classes, **kwargs)


retinanet_resnet50_fpn = named("retinanet_resnet50_fpn", _network)
