"""Networks whose layers see all that came before."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from ....context import run
from ._api import Addresses

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]

model_urls = Addresses()


class _DenseLayer(nn.Module):
    def __init__(self, inner: int, growth: int, bn_size: int, drop: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inner)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inner, bn_size * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth, growth, 3, padding=1, bias=False)
        self.drop_rate = float(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the layer adds."""
        found: torch.Tensor = self.conv2(self.relu2(self.norm2(self.conv1(self.relu1(self.norm1(x))))))
        return nn.functional.dropout(found, self.drop_rate, self.training) if self.drop_rate else found


class _DenseBlock(nn.ModuleDict):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What went in and what all layers add."""
        for layer in self.values():
            x = torch.cat([x, layer(x)], 1)
        return x


class DenseNet(nn.Module):
    """Blocks of layers, between which there are half as many channels."""

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Any = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        parts: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(3, num_init_features, 7, 2, 3, bias=False),
            norm0=nn.BatchNorm2d(num_init_features),
            relu0=nn.ReLU(inplace=True),
            pool0=nn.MaxPool2d(3, 2, 1),
        )
        width = num_init_features
        for index, count in enumerate(block_config, 1):
            block = _DenseBlock()
            for number in range(count):
                layer = _DenseLayer(width + number * growth_rate, growth_rate, bn_size, drop_rate)
                block["denselayer" + str(number + 1)] = layer
            parts["denseblock" + str(index)] = block
            width += count * growth_rate
            if index < len(block_config):
                between = OrderedDict(
                    norm=nn.BatchNorm2d(width),
                    relu=nn.ReLU(inplace=True),
                    conv=nn.Conv2d(width, width // 2, 1, bias=False),
                    pool=nn.AvgPool2d(2, 2),
                )
                parts["transition" + str(index)] = nn.Sequential(between)
                width //= 2
        parts["norm5"] = nn.BatchNorm2d(width)
        self.features = nn.Sequential(parts)
        self.classifier = nn.Linear(width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        seen = nn.functional.relu(self.features(x), inplace=True)
        found: torch.Tensor = self.classifier(nn.functional.adaptive_avg_pool2d(seen, (1, 1)).flatten(1))
        return found


def _named(name: str, *settings: Any) -> Any:
    def make(
        pretrained: Any = None, *args: Any, weights: Any = None, progress: Any = None, **kwargs: Any
    ) -> Any:
        if pretrained or weights:
            run().used("weights of " + name, "those that it is made with")
        return DenseNet(*settings, **kwargs)

    return make


densenet121 = _named("densenet121", 32, (6, 12, 24, 16), 64)
densenet161 = _named("densenet161", 48, (6, 12, 36, 24), 96)
densenet169 = _named("densenet169", 32, (6, 12, 32, 32), 64)
densenet201 = _named("densenet201", 32, (6, 12, 48, 32), 64)
