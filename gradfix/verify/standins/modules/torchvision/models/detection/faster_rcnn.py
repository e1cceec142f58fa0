"""Faster R-CNN: boxes and classes of objects (https://arxiv.org/abs/1506.01497)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ...ops.misc import Conv2dNormActivation, FrozenBatchNorm2d
from ...ops.poolers import MultiScaleRoIAlign
from .._api import untrained
from .anchor_utils import AnchorGenerator
from .backbone_utils import mobilenet_backbone, resnet_fpn_backbone
from .generalized_rcnn import GeneralizedRCNN
from .roi_heads import RoIHeads
from .rpn import RegionProposalNetwork, RPNHead
from .transform import GeneralizedRCNNTransform

__all__ = [
    "FastRCNNPredictor",
    "FasterRCNN",
    "TwoMLPHead",
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
]

SIZES = (32, 64, 128, 256, 512)
SHAPES = (0.5, 1.0, 2.0)


class TwoMLPHead(nn.Module):
    """Two layers over a region."""

    def __init__(self, in_channels: int, representation_size: int) -> None:
        super().__init__()
        self.fc6 = nn.Linear(in_channels, representation_size)
        self.fc7 = nn.Linear(representation_size, representation_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Regions x width."""
        return torch.relu(self.fc7(torch.relu(self.fc6(x.flatten(start_dim=1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """Convolutions and layers over a region."""

    def __init__(
        self, input_size: tuple[int, int, int], conv_layers: list[int], fc_layers: list[int], norm_layer: Any
    ) -> None:
        channels, high, wide = input_size
        parts: list[nn.Module] = []
        for width in conv_layers:
            parts.append(Conv2dNormActivation(channels, width, norm_layer=norm_layer))
            channels = width
        parts.append(nn.Flatten())
        flat = channels * high * wide
        for width in fc_layers:
            parts += [nn.Linear(flat, width), nn.ReLU(inplace=True)]
            flat = width
        super().__init__(*parts)


class FastRCNNPredictor(nn.Module):
    """The scores of the classes of a region, the first of which is background, and a box for each of them."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.cls_score = nn.Linear(in_channels, num_classes)
        self.bbox_pred = nn.Linear(in_channels, num_classes * 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Regions x classes, regions x (classes x 4)."""
        x = x.flatten(start_dim=1)
        return self.cls_score(x), self.bbox_pred(x)


class FasterRCNN(GeneralizedRCNN):
    """Faster R-CNN, simplified in how its regions are chosen; ``backbone`` tells its ``out_channels``."""

    def __init__(
        self,
        backbone: Any,
        num_classes: int | None = None,
        min_size: Any = 800,
        max_size: int = 1333,
        image_mean: Any = None,
        image_std: Any = None,
        rpn_anchor_generator: Any = None,
        rpn_head: Any = None,
        *,
        rpn_fg_iou_thresh: float = 0.7,
        rpn_bg_iou_thresh: float = 0.3,
        box_roi_pool: Any = None,
        box_head: Any = None,
        box_predictor: Any = None,
        box_score_thresh: float = 0.05,
        box_nms_thresh: float = 0.5,
        box_detections_per_img: int = 100,
        **kwargs: Any,
    ) -> None:
        if not hasattr(backbone, "out_channels"):
            raise ValueError("backbone should contain an attribute out_channels")
        if (num_classes is None) == (box_predictor is None):
            raise ValueError("either num_classes or box_predictor has to be told")
        channels = backbone.out_channels
        anchors = rpn_anchor_generator or AnchorGenerator(tuple((size,) for size in SIZES), (SHAPES,) * 5)
        head = rpn_head or RPNHead(channels, anchors.num_anchors_per_location()[0])
        rpn = RegionProposalNetwork(anchors, head, rpn_fg_iou_thresh, rpn_bg_iou_thresh)
        pool = box_roi_pool or MultiScaleRoIAlign(["0", "1", "2", "3"], 7, 2)
        if box_head is None:
            box_head = TwoMLPHead(channels * pool.output_size[0] ** 2, 1024)
        if num_classes is not None:
            box_predictor = FastRCNNPredictor(1024, num_classes)
        heads = RoIHeads(
            pool, box_head, box_predictor, box_score_thresh, box_nms_thresh, box_detections_per_img
        )
        mean, spread = image_mean or [0.485, 0.456, 0.406], image_std or [0.229, 0.224, 0.225]
        super().__init__(backbone, rpn, heads, GeneralizedRCNNTransform(min_size, max_size, mean, spread))


def named(name: str, build: Any, *, most: int = 5, usual: int = 3) -> Any:
    """The function of this name that makes a network.

    ``build`` is told the classes, how many parts of the network below are learnt (``usual`` of ``most``, if
    it is thought to be trained), whether it is, and what else was said.
    """

    def make(
        pretrained: Any = None,
        progress: Any = None,
        num_classes: int | None = None,
        pretrained_backbone: Any = True,
        trainable_backbone_layers: int | None = None,
        *,
        weights: Any = None,
        weights_backbone: Any = True,
        **kwargs: Any,
    ) -> nn.Module:
        if pretrained or weights:
            untrained(name)
        trained = bool(pretrained or weights or (pretrained_backbone and weights_backbone))
        learnt = trainable_backbone_layers if trainable_backbone_layers is not None else usual
        made: nn.Module = build(
            91 if num_classes is None else num_classes, learnt if trained else most, trained, **kwargs
        )
        return made

    make.__name__ = make.__qualname__ = name
    return make


def norm(trained: bool) -> Any:
    """Batch norms of trained networks are not learnt on."""
    return FrozenBatchNorm2d if trained else nn.BatchNorm2d


def _first(classes: int, learnt: int, trained: bool, **kwargs: Any) -> FasterRCNN:
    backbone = resnet_fpn_backbone("resnet50", trained, norm(trained), learnt)
    return FasterRCNN(backbone, classes, **kwargs)


def second_parts(learnt: int, trained: bool) -> dict[str, Any]:
    """What the second version has instead: more layers, and batch norms that are learnt."""
    backbone = resnet_fpn_backbone("resnet50", trained, nn.BatchNorm2d, learnt, fpn_norm=nn.BatchNorm2d)
    return {
        "backbone": backbone,
        "rpn_head": RPNHead(backbone.out_channels, len(SHAPES), conv_depth=2),
        "box_head": FastRCNNConvFCHead((256, 7, 7), [256] * 4, [1024], nn.BatchNorm2d),
    }


def _second(classes: int, learnt: int, trained: bool, **kwargs: Any) -> FasterRCNN:
    return FasterRCNN(num_classes=classes, **{**second_parts(learnt, trained), **kwargs})


def _mobile(classes: int, learnt: int, trained: bool, **kwargs: Any) -> FasterRCNN:
    backbone = mobilenet_backbone("mobilenet_v3_large", trained, True, norm(trained), learnt)
    return FasterRCNN(
        backbone, classes, **{"rpn_anchor_generator": AnchorGenerator((SIZES,) * 3, (SHAPES,) * 3), **kwargs}
    )


def _small(classes: int, learnt: int, trained: bool, **kwargs: Any) -> FasterRCNN:
    return _mobile(classes, learnt, trained, **{"min_size": 320, "max_size": 640, **kwargs})


fasterrcnn_resnet50_fpn = named("fasterrcnn_resnet50_fpn", _first)
fasterrcnn_resnet50_fpn_v2 = named("fasterrcnn_resnet50_fpn_v2", _second)
fasterrcnn_mobilenet_v3_large_fpn = named("fasterrcnn_mobilenet_v3_large_fpn", _mobile, most=6)
fasterrcnn_mobilenet_v3_large_320_fpn = named("fasterrcnn_mobilenet_v3_large_320_fpn", _small, most=6)
