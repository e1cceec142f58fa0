"""VGG networks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ....context import run
from ._api import Addresses

__all__ = ["VGG"]

LAYERS: dict[int, list[Any]] = {
    11: [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    13: [64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    16: [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"],
    19: [64, 64, "M", 128, 128, "M", *[256] * 4, "M", *[512] * 4, "M", *[512] * 4, "M"],
}

cfgs = {"A": LAYERS[11], "B": LAYERS[13], "D": LAYERS[16], "E": LAYERS[19]}
"""The same by the letters of the paper."""
model_urls = Addresses()


class VGG(nn.Module):
    """A VGG network."""

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, dropout: float = 0.5, **kwargs: Any
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 49, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        found: torch.Tensor = self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))
        return found


def make_layers(plan: list[Any], batch_norm: bool = False) -> nn.Sequential:
    """Convolutions and poolings."""
    made: list[nn.Module] = []
    inner = 3
    for outer in plan:
        if outer == "M":
            made.append(nn.MaxPool2d(2, 2))
        else:
            made.append(nn.Conv2d(inner, outer, 3, padding=1))
            made += [nn.BatchNorm2d(outer)] if batch_norm else []
            made.append(nn.ReLU(inplace=True))
            inner = outer
    return nn.Sequential(*made)


def _maker(name: str, depth: int, batch_norm: bool) -> Any:
    def make(*args: Any, **kwargs: Any) -> VGG:
        if kwargs.pop("pretrained", None) or kwargs.pop("weights", None) or any(args):
            run().used("weights of " + name, "those that it is made with")
        kwargs.pop("progress", None)
        return VGG(make_layers(LAYERS[depth], batch_norm), **kwargs)

    make.__name__ = name
    return make


for _depth in LAYERS:
    for _norm in (False, True):
        _name = f"vgg{_depth}" + ("_bn" if _norm else "")
        globals()[_name] = _maker(_name, _depth, _norm)
        __all__.append(_name)
