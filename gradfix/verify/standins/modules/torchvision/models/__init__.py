"""Networks with the layers, names and shapes of the real ones and the weights that they are made with."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ....context import run
from ....inert import Inert
from . import inception as _inception
from . import resnet as _resnet
from . import vgg as _vgg
from .densenet import *  # noqa: F403
from .inception import *  # noqa: F403
from .mobilenetv2 import *  # noqa: F403
from .resnet import *  # noqa: F403
from .vgg import *  # noqa: F403

inception = _inception
resnet = _resnet
vgg = _vgg


class AlexNet(nn.Module):
    """AlexNet."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, 4, 2),
            nn.ReLU(True),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(True),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(True),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(True),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(True),
            nn.MaxPool2d(3, 2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(256 * 36, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        found: torch.Tensor = self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))
        return found


def alexnet(*args: Any, **kwargs: Any) -> AlexNet:
    """AlexNet, never with trained weights."""
    if kwargs.pop("pretrained", None) or kwargs.pop("weights", None) or any(args):
        run().used("weights of alexnet", "those that it is made with")
    kwargs.pop("progress", None)
    return AlexNet(**kwargs)


class Weights:
    """The names of trained weights that are not here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Weights(self.name + "." + name)

    def transforms(self) -> Any:
        """The transformations that go with them."""
        from .. import transforms

        return transforms.Compose(
            [
                transforms.Resize(256),
                transforms.CenterCrop(224),
                transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Weights(name) if name.endswith("_Weights") else Inert("torchvision.models." + name)
