"""Networks of films."""

from __future__ import annotations

from typing import Any

import torch

from .....inert import others
from .._api import Weights as _Weights
from .resnet import VideoResNet, mc3_18, r2plus1d_18, r3d_18

__all__ = ["VideoResNet", "mc3_18", "r2plus1d_18", "r3d_18"]


class Weights(_Weights):
    """Of networks for the 400 kinds of Kinetics."""

    classes = 400

    def transforms(self) -> Any:
        """Bytes, time x channels x height x width, to numbers with the channels first, 112 x 112."""
        from ... import transforms

        return transforms.Compose(
            [
                transforms.Resize((128, 171)),
                transforms.CenterCrop(112),
                transforms.ConvertImageDtype(torch.float32),
                transforms.Normalize([0.43216, 0.394666, 0.37645], [0.22803, 0.22145, 0.216989]),
                transforms.Lambda(lambda film: film.transpose(-4, -3)),
            ]
        )


_others = others(__name__)


def __getattr__(name: str) -> Any:
    return Weights(name) if name.endswith("_Weights") else _others(name)
