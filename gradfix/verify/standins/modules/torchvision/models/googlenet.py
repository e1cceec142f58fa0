"""GoogLeNet: several convolutions side by side in each block (https://arxiv.org/abs/1409.4842)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn

from ._api import untrained
from ._utils import callable_as
from .inception import BasicConv2d

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "googlenet"]

BLOCKS = {
    "inception3a": (192, 64, 96, 128, 16, 32, 32),
    "inception3b": (256, 128, 128, 192, 32, 96, 64),
    "inception4a": (480, 192, 96, 208, 16, 48, 64),
    "inception4b": (512, 160, 112, 224, 24, 64, 64),
    "inception4c": (512, 128, 128, 256, 24, 64, 64),
    "inception4d": (512, 112, 144, 288, 32, 64, 64),
    "inception4e": (528, 256, 160, 320, 32, 128, 128),
    "inception5a": (832, 256, 160, 320, 32, 128, 128),
    "inception5b": (832, 384, 192, 384, 48, 128, 128),
}
"""Channels that go in, and those of each row: table 1 of the paper."""


class GoogLeNetOutputs(NamedTuple):
    """Scores of the classes, and those that come from the middle of the network."""

    logits: torch.Tensor
    aux_logits2: torch.Tensor | None
    aux_logits1: torch.Tensor | None


class Inception(nn.Module):
    """Four rows, whose outputs stand side by side. Both wide windows are of 3 x 3, as in the real library."""

    def __init__(
        self,
        in_channels: int,
        ch1x1: int,
        ch3x3red: int,
        ch3x3: int,
        ch5x5red: int,
        ch5x5: int,
        pool_proj: int,
        conv_block: Any = None,
    ) -> None:
        super().__init__()
        kind = conv_block or BasicConv2d
        self.branch1 = kind(in_channels, ch1x1, kernel_size=1)
        self.branch2 = nn.Sequential(
            kind(in_channels, ch3x3red, kernel_size=1), kind(ch3x3red, ch3x3, kernel_size=3, padding=1)
        )
        self.branch3 = nn.Sequential(
            kind(in_channels, ch5x5red, kernel_size=1), kind(ch5x5red, ch5x5, kernel_size=3, padding=1)
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(3, 1, 1, ceil_mode=True), kind(in_channels, pool_proj, kernel_size=1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """All rows."""
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """Scores of the classes from the middle of the network."""

    def __init__(
        self, in_channels: int, num_classes: int, conv_block: Any = None, dropout: float = 0.7
    ) -> None:
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of 4 x 4 places."""
        x = torch.flatten(self.conv(nn.functional.adaptive_avg_pool2d(x, (4, 4))), 1)
        found: torch.Tensor = self.fc2(self.dropout(nn.functional.relu(self.fc1(x), inplace=True)))
        return found


class GoogLeNet(nn.Module):
    """Nine such blocks."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        init_weights: Any = None,
        blocks: Any = None,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        super().__init__()
        basic, block, aux = blocks or (BasicConv2d, Inception, InceptionAux)
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = basic(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = basic(64, 64, kernel_size=1)
        self.conv3 = basic(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        for name, channels in BLOCKS.items():
            self.add_module(name, block(*channels))
        self.maxpool3 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.maxpool4 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(1024, num_classes)

    def forward(self, x: torch.Tensor) -> Any:
        """Scores of the classes; in training also those of two places in the middle."""
        if self.transform_input:
            scale = torch.tensor([0.229, 0.224, 0.225]) / 0.5
            shift = (torch.tensor([0.485, 0.456, 0.406]) - 0.5) / 0.5
            x = x * scale.to(x)[:, None, None] + shift.to(x)[:, None, None]
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        middle: dict[str, Any] = {}
        heads: dict[str, Any] = {"inception4a": self.aux1, "inception4d": self.aux2}
        for name in BLOCKS:
            x = self.get_submodule(name)(x)
            if self.training and heads.get(name) is not None:
                middle[name] = heads[name](x)
            if name == "inception3b":
                x = self.maxpool3(x)
            elif name == "inception4e":
                x = self.maxpool4(x)
        found = self.fc(self.dropout(torch.flatten(self.avgpool(x), 1)))
        if self.training and self.aux_logits:
            return GoogLeNetOutputs(found, middle.get("inception4d"), middle.get("inception4a"))
        return found


def googlenet(
    pretrained: Any = None, progress: Any = None, *, weights: Any = None, **kwargs: Any
) -> GoogLeNet:
    """GoogLeNet, never with trained weights."""
    if pretrained or weights:
        untrained("googlenet")
        # They were trained on pictures of another scale, and have nothing for the middle.
        kwargs = {"transform_input": True, "aux_logits": False, **kwargs}
    return GoogLeNet(**kwargs)


callable_as(__name__, "googlenet")
