"""Mask R-CNN: boxes, classes and outlines of objects (https://arxiv.org/abs/1703.06870)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torch import nn

from ...ops.misc import Conv2dNormActivation
from ...ops.poolers import MultiScaleRoIAlign
from .backbone_utils import resnet_fpn_backbone
from .faster_rcnn import FasterRCNN, named, norm, second_parts

__all__ = [
    "MaskRCNN",
    "MaskRCNNHeads",
    "MaskRCNNPredictor",
    "maskrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn_v2",
]


class MaskRCNNHeads(nn.Sequential):
    """Convolutions over a region."""

    def __init__(self, in_channels: int, layers: Any, dilation: int, norm_layer: Any = None) -> None:
        parts = []
        for width in layers:
            parts.append(Conv2dNormActivation(in_channels, width, dilation=dilation, norm_layer=norm_layer))
            in_channels = width
        super().__init__(*parts)


class MaskRCNNPredictor(nn.Sequential):
    """Outlines for each class, twice as high and wide as what is seen."""

    def __init__(self, in_channels: int, dim_reduced: int, num_classes: int) -> None:
        parts: OrderedDict[str, nn.Module] = OrderedDict(
            conv5_mask=nn.ConvTranspose2d(in_channels, dim_reduced, 2, 2),
            relu=nn.ReLU(inplace=True),
            mask_fcn_logits=nn.Conv2d(dim_reduced, num_classes, 1),
        )
        super().__init__(parts)


class MaskRCNN(FasterRCNN):
    """Mask R-CNN, simplified in how its regions are chosen: there is ``loss_mask`` as well, and ``masks``,
    N x 1 x height x width, of what is found."""

    def __init__(
        self,
        backbone: Any,
        num_classes: int | None = None,
        *args: Any,
        mask_roi_pool: Any = None,
        mask_head: Any = None,
        mask_predictor: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(backbone, num_classes, *args, **kwargs)
        heads: Any = self.roi_heads
        heads.mask_roi_pool = mask_roi_pool or MultiScaleRoIAlign(["0", "1", "2", "3"], 14, 2)
        heads.mask_head = mask_head or MaskRCNNHeads(backbone.out_channels, [256] * 4, 1)
        if mask_predictor is None and num_classes is not None:
            mask_predictor = MaskRCNNPredictor(256, 256, num_classes)
        heads.mask_predictor = mask_predictor


def _first(classes: int, learnt: int, trained: bool, **kwargs: Any) -> MaskRCNN:
    return MaskRCNN(resnet_fpn_backbone("resnet50", trained, norm(trained), learnt), classes, **kwargs)


def _second(classes: int, learnt: int, trained: bool, **kwargs: Any) -> MaskRCNN:
    head = MaskRCNNHeads(256, [256] * 4, 1, nn.BatchNorm2d)
    return MaskRCNN(num_classes=classes, **{**second_parts(learnt, trained), "mask_head": head, **kwargs})


maskrcnn_resnet50_fpn = named("maskrcnn_resnet50_fpn", _first)
maskrcnn_resnet50_fpn_v2 = named("maskrcnn_resnet50_fpn_v2", _second)
