"""AlexNet: five convolutions and three layers (https://arxiv.org/abs/1404.5997)."""

from __future__ import annotations

import torch
from torch import nn

from ._api import named
from ._utils import callable_as

__all__ = ["AlexNet", "alexnet"]


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


alexnet = named("alexnet", AlexNet)
callable_as(__name__, "alexnet")
