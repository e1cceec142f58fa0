"""Networks that tell the class of each pixel, each in a module of its name."""

from __future__ import annotations

from typing import Any

from .....inert import others
from .._api import Weights as _Weights
from .deeplabv3 import DeepLabV3, deeplabv3_mobilenet_v3_large, deeplabv3_resnet50, deeplabv3_resnet101
from .fcn import FCN, fcn_resnet50, fcn_resnet101
from .lraspp import LRASPP, lraspp_mobilenet_v3_large

__all__ = [
    "FCN",
    "LRASPP",
    "DeepLabV3",
    "deeplabv3_mobilenet_v3_large",
    "deeplabv3_resnet50",
    "deeplabv3_resnet101",
    "fcn_resnet50",
    "fcn_resnet101",
    "lraspp_mobilenet_v3_large",
]


class Weights(_Weights):
    """Of networks for the 20 kinds of Pascal VOC and what is behind them."""

    classes = 21

    def transforms(self) -> Any:
        """Pictures whose shorter side is 520."""
        from ... import transforms

        return transforms.Compose(
            [
                transforms.Resize(520),
                transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )


_others = others(__name__)


def __getattr__(name: str) -> Any:
    return Weights(name) if name.endswith("_Weights") else _others(name)
