"""The third Inception network: several convolutions side by side in each of its blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from ....context import run

__all__ = ["Inception3", "InceptionOutputs", "inception_v3"]


class InceptionOutputs(NamedTuple):
    """Scores of the classes, and those that come from the middle of the network."""

    logits: torch.Tensor
    aux_logits: torch.Tensor | None


class BasicConv2d(nn.Module):
    """A convolution, normalised."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Without what is below 0."""
        return functional.relu(self.bn(self.conv(x)), inplace=True)


class Block(nn.Module):
    """Rows of convolutions whose outputs stand side by side."""

    def __init__(self, conv_block: Any = None) -> None:
        super().__init__()
        self._kind = conv_block or BasicConv2d

    def add(
        self, name: str, inner: int, outer: int, size: Any = 1, stride: int = 1, pad: bool = True
    ) -> None:
        """One convolution, which keeps height and width if it is padded and has no stride."""
        sides = size if isinstance(size, tuple) else (size, size)
        padding = tuple(one // 2 for one in sides) if pad else (0, 0)
        setattr(self, name, self._kind(inner, outer, kernel_size=sides, stride=stride, padding=padding))

    def row(self, x: torch.Tensor, *names: str) -> torch.Tensor:
        """Some convolutions, one after the other."""
        for name in names:
            x = getattr(self, name)(x)
        return x

    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """All rows."""
        return torch.cat(self._forward(x), 1)


def pooled(x: torch.Tensor) -> torch.Tensor:
    """The means of what lies around each place."""
    return functional.avg_pool2d(x, kernel_size=3, stride=1, padding=1)


class InceptionA(Block):
    """Windows of 5 x 5 and 3 x 3."""

    def __init__(self, in_channels: int, pool_features: int, conv_block: Any = None) -> None:
        super().__init__(conv_block)
        self.add("branch1x1", in_channels, 64)
        self.add("branch5x5_1", in_channels, 48)
        self.add("branch5x5_2", 48, 64, 5)
        self.add("branch3x3dbl_1", in_channels, 64)
        self.add("branch3x3dbl_2", 64, 96, 3)
        self.add("branch3x3dbl_3", 96, 96, 3)
        self.add("branch_pool", in_channels, pool_features)

    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [
            self.row(x, "branch1x1"),
            self.row(x, "branch5x5_1", "branch5x5_2"),
            self.row(x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),
            self.row(pooled(x), "branch_pool"),
        ]


class InceptionB(Block):
    """Half the height and width."""

    def __init__(self, in_channels: int, conv_block: Any = None) -> None:
        super().__init__(conv_block)
        self.add("branch3x3", in_channels, 384, 3, 2, pad=False)
        self.add("branch3x3dbl_1", in_channels, 64)
        self.add("branch3x3dbl_2", 64, 96, 3)
        self.add("branch3x3dbl_3", 96, 96, 3, 2, pad=False)

    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [
            self.row(x, "branch3x3"),
            self.row(x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),
            functional.max_pool2d(x, kernel_size=3, stride=2),
        ]


class InceptionC(Block):
    """Rows and columns of 7."""

    def __init__(self, in_channels: int, channels_7x7: int, conv_block: Any = None) -> None:
        super().__init__(conv_block)
        few = channels_7x7
        self.add("branch1x1", in_channels, 192)
        self.add("branch7x7_1", in_channels, few)
        self.add("branch7x7_2", few, few, (1, 7))
        self.add("branch7x7_3", few, 192, (7, 1))
        self.add("branch7x7dbl_1", in_channels, few)
        self.add("branch7x7dbl_2", few, few, (7, 1))
        self.add("branch7x7dbl_3", few, few, (1, 7))
        self.add("branch7x7dbl_4", few, few, (7, 1))
        self.add("branch7x7dbl_5", few, 192, (1, 7))
        self.add("branch_pool", in_channels, 192)

    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [
            self.row(x, "branch1x1"),
            self.row(x, *(f"branch7x7_{number}" for number in range(1, 4))),
            self.row(x, *(f"branch7x7dbl_{number}" for number in range(1, 6))),
            self.row(pooled(x), "branch_pool"),
        ]


class InceptionD(Block):
    """Half the height and width again."""

    def __init__(self, in_channels: int, conv_block: Any = None) -> None:
        super().__init__(conv_block)
        self.add("branch3x3_1", in_channels, 192)
        self.add("branch3x3_2", 192, 320, 3, 2, pad=False)
        self.add("branch7x7x3_1", in_channels, 192)
        self.add("branch7x7x3_2", 192, 192, (1, 7))
        self.add("branch7x7x3_3", 192, 192, (7, 1))
        self.add("branch7x7x3_4", 192, 192, 3, 2, pad=False)

    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [
            self.row(x, "branch3x3_1", "branch3x3_2"),
            self.row(x, *(f"branch7x7x3_{number}" for number in range(1, 5))),
            functional.max_pool2d(x, kernel_size=3, stride=2),
        ]


class InceptionE(Block):
    """Rows and columns of 3, side by side."""

    def __init__(self, in_channels: int, conv_block: Any = None) -> None:
        super().__init__(conv_block)
        self.add("branch1x1", in_channels, 320)
        self.add("branch3x3_1", in_channels, 384)
        self.add("branch3x3_2a", 384, 384, (1, 3))
        self.add("branch3x3_2b", 384, 384, (3, 1))
        self.add("branch3x3dbl_1", in_channels, 448)
        self.add("branch3x3dbl_2", 448, 384, 3)
        self.add("branch3x3dbl_3a", 384, 384, (1, 3))
        self.add("branch3x3dbl_3b", 384, 384, (3, 1))
        self.add("branch_pool", in_channels, 192)

    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        once = self.row(x, "branch3x3_1")
        twice = self.row(x, "branch3x3dbl_1", "branch3x3dbl_2")
        return [
            self.row(x, "branch1x1"),
            torch.cat([self.row(once, "branch3x3_2a"), self.row(once, "branch3x3_2b")], 1),
            torch.cat([self.row(twice, "branch3x3dbl_3a"), self.row(twice, "branch3x3dbl_3b")], 1),
            self.row(pooled(x), "branch_pool"),
        ]


class InceptionAux(nn.Module):
    """Scores of the classes from the middle of the network."""

    def __init__(self, in_channels: int, num_classes: int, conv_block: Any = None) -> None:
        super().__init__()
        kind = conv_block or BasicConv2d
        self.conv0 = kind(in_channels, 128, kernel_size=1)
        self.conv1 = kind(128, 768, kernel_size=5)
        self.fc = nn.Linear(768, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of what is 17 wide, mostly."""
        x = self.conv1(self.conv0(functional.avg_pool2d(x, kernel_size=5, stride=3)))
        found: torch.Tensor = self.fc(functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1))
        return found


BLOCKS: tuple[Any, ...] = (
    BasicConv2d,
    InceptionA,
    InceptionB,
    InceptionC,
    InceptionD,
    InceptionE,
    InceptionAux,
)
"""What the network is made of."""


class Inception3(nn.Module):
    """Eleven such blocks."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        inception_blocks: Any = None,
        init_weights: Any = None,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        basic, a, b, c, d, e, aux = inception_blocks or BLOCKS
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = basic(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = basic(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = basic(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = basic(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = basic(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Mixed_5b = a(192, pool_features=32)
        self.Mixed_5c = a(256, pool_features=64)
        self.Mixed_5d = a(288, pool_features=64)
        self.Mixed_6a = b(288)
        self.Mixed_6b = c(768, channels_7x7=128)
        self.Mixed_6c = c(768, channels_7x7=160)
        self.Mixed_6d = c(768, channels_7x7=160)
        self.Mixed_6e = c(768, channels_7x7=192)
        self.AuxLogits = aux(768, num_classes) if aux_logits else None
        self.Mixed_7a = d(768)
        self.Mixed_7b = e(1280)
        self.Mixed_7c = e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)

    def forward(self, x: torch.Tensor) -> Any:
        """Scores of the classes; in training also those of the middle."""
        if self.transform_input:
            scale = torch.tensor([0.229, 0.224, 0.225]) / 0.5
            shift = (torch.tensor([0.485, 0.456, 0.406]) - 0.5) / 0.5
            x = x * scale[:, None, None] + shift[:, None, None]
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        middle = self.AuxLogits(x) if self.AuxLogits is not None and self.training else None
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        found = self.fc(torch.flatten(self.dropout(self.avgpool(x)), 1))
        return InceptionOutputs(found, middle) if self.training and self.aux_logits else found


def inception_v3(
    pretrained: Any = None, *args: Any, weights: Any = None, progress: Any = None, **kwargs: Any
) -> Inception3:
    """The third Inception network, never with trained weights."""
    if pretrained or weights:
        run().used("weights of inception_v3", "those that it is made with")
        kwargs.setdefault("transform_input", True)  # They were trained on pictures of another scale.
    return Inception3(**kwargs)
