"""Maps of several sizes from networks that tell classes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ...ops.feature_pyramid_network import FeaturePyramidNetwork, LastLevelMaxPool
from ...ops.misc import FrozenBatchNorm2d
from .. import get_model_builder
from .._utils import IntermediateLayerGetter

__all__ = ["BackboneWithFPN", "mobilenet_backbone", "resnet_fpn_backbone"]

STAGES = [0, 2, 4, 7, 13, 16]
"""Parts of a large MobileNet V3 from which on height and width are half of what they were, and the last."""


class BackboneWithFPN(nn.Module):
    """Parts of a network and a feature pyramid over them."""

    def __init__(
        self,
        backbone: nn.Module,
        return_layers: dict[str, str],
        in_channels_list: list[int],
        out_channels: int,
        extra_blocks: Any = None,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers)
        more = extra_blocks or LastLevelMaxPool()
        self.fpn = FeaturePyramidNetwork(in_channels_list, out_channels, more, norm_layer)
        self.out_channels = out_channels

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """The maps, the largest first."""
        found: dict[str, torch.Tensor] = self.fpn(self.body(x))
        return found


def _keep(backbone: nn.Module, learnt: tuple[str, ...]) -> None:
    """Let nothing be learnt but what begins with these names."""
    for name, weights in backbone.named_parameters():
        if not name.startswith(learnt):
            weights.requires_grad_(False)


def resnet_fpn_backbone(
    backbone_name: str = "resnet50",
    pretrained: Any = None,
    norm_layer: Any = FrozenBatchNorm2d,
    trainable_layers: int = 3,
    returned_layers: list[int] | None = None,
    extra_blocks: Any = None,
    *,
    weights: Any = None,
    fpn_norm: Any = None,
) -> BackboneWithFPN:
    """Of a residual network, of whose five parts the last ``trainable_layers`` are learnt."""
    made = get_model_builder(backbone_name)(weights=weights or pretrained, norm_layer=norm_layer)
    parts = ("layer4", "layer3", "layer2", "layer1", "conv1", "bn1")
    _keep(made, parts if trainable_layers == 5 else parts[:trainable_layers])
    returned = returned_layers or [1, 2, 3, 4]
    names = {f"layer{number}": str(index) for index, number in enumerate(returned)}
    eighth = made.fc.in_features // 8
    widths = [eighth << number - 1 for number in returned]
    return BackboneWithFPN(made, names, widths, 256, extra_blocks, fpn_norm)


def mobilenet_backbone(
    backbone_name: str = "mobilenet_v3_large",
    pretrained: Any = None,
    fpn: bool = True,
    norm_layer: Any = FrozenBatchNorm2d,
    trainable_layers: int = 2,
    *,
    weights: Any = None,
) -> BackboneWithFPN:
    """Of a MobileNet V3, of whose six parts the last ``trainable_layers`` are learnt; always a pyramid."""
    made = get_model_builder(backbone_name)(weights=weights or pretrained, norm_layer=norm_layer).features
    first = [*STAGES, len(made)][len(STAGES) - trainable_layers]
    _keep(made, tuple(f"{number}." for number in range(first, len(made))))
    names = {str(STAGES[-2]): "0", str(STAGES[-1]): "1"}
    return BackboneWithFPN(made, names, [160, 960], 256)
