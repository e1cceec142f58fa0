"""Networks that find objects in pictures.

They have the layers, names and shapes of the real ones. How regions are chosen is simplified: the best few
by their scores are taken, none are drawn by chance, and objects and background count half each in the first
two losses. The losses depend on all weights that are learnt.
"""

from __future__ import annotations

from typing import Any

from .....inert import others
from .._api import Weights as _Weights
from .faster_rcnn import (
    FasterRCNN,
    fasterrcnn_mobilenet_v3_large_320_fpn,
    fasterrcnn_mobilenet_v3_large_fpn,
    fasterrcnn_resnet50_fpn,
    fasterrcnn_resnet50_fpn_v2,
)
from .mask_rcnn import MaskRCNN, maskrcnn_resnet50_fpn, maskrcnn_resnet50_fpn_v2
from .retinanet import RetinaNet, retinanet_resnet50_fpn

__all__ = [
    "FasterRCNN",
    "MaskRCNN",
    "RetinaNet",
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
    "maskrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn_v2",
    "retinanet_resnet50_fpn",
]


class Weights(_Weights):
    """Of networks for the 90 kinds of COCO and what is behind them."""

    classes = 91

    def transforms(self) -> Any:
        """Numbers from 0 to 1; the network does the rest."""
        from ... import transforms

        return transforms.ToTensor()


_others = others(__name__)


def __getattr__(name: str) -> Any:
    return Weights(name) if name.endswith("_Weights") else _others(name)
