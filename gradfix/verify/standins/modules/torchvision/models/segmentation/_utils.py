"""What networks that tell the class of each pixel share."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from .. import mobilenetv3, resnet
from .._api import untrained
from .._utils import IntermediateLayerGetter


class _SimpleSegmentationModel(nn.Module):
    """A head over what a network sees, and mostly a second one over the middle of it."""

    def __init__(self, backbone: nn.Module, classifier: nn.Module, aux_classifier: Any = None) -> None:
        super().__init__()
        self.backbone, self.classifier, self.aux_classifier = backbone, classifier, aux_classifier

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """``out``, and ``aux`` of the second head: batch x classes x height x width of the pictures."""
        seen = self.backbone(x)
        found = OrderedDict(out=self._large(self.classifier(seen["out"]), x))
        if self.aux_classifier is not None:
            found["aux"] = self._large(self.aux_classifier(seen["aux"]), x)
        return found

    def _large(self, scores: torch.Tensor, pictures: torch.Tensor) -> torch.Tensor:
        size = pictures.shape[-2:]
        return nn.functional.interpolate(scores, size=size, mode="bilinear", align_corners=False)


def residual(name: str, aux: bool) -> tuple[nn.Module, int, int]:
    """A residual network whose last two parts keep height and width; channels of its end and its middle."""
    made = getattr(resnet, name)(replace_stride_with_dilation=[False, True, True])
    parts = {"layer4": "out", "layer3": "aux"} if aux else {"layer4": "out"}
    return IntermediateLayerGetter(made, parts), 2048, 1024


def mobile(aux: bool) -> tuple[nn.Module, int, int]:
    """The same of a MobileNet V3."""
    made = mobilenetv3.mobilenet_v3_large(dilated=True).features
    last, middle = len(made) - 1, 4
    parts = {str(last): "out", str(middle): "aux"} if aux else {str(last): "out"}
    return IntermediateLayerGetter(made, parts), 960, 40


def named(name: str, network: Any, head: Any, aux_head: Any, backbone: Any, *settings: Any) -> Any:
    """The function of this name that makes a network, never with trained weights.

    ``head`` and ``aux_head`` are made for channels and classes.
    """

    def make(
        pretrained: Any = None,
        progress: Any = None,
        num_classes: int | None = None,
        aux_loss: bool | None = None,
        *,
        weights: Any = None,
        weights_backbone: Any = None,
        pretrained_backbone: Any = None,
    ) -> nn.Module:
        if pretrained or weights:
            untrained(name)
            aux_loss = True  # Whoever trained them had both heads.
        classes = 21 if num_classes is None else num_classes
        seen, wide, middle = backbone(*settings, bool(aux_loss))
        second = aux_head(middle, classes) if aux_loss else None
        made: nn.Module = network(seen, head(wide, classes), second)
        return made

    make.__name__ = make.__qualname__ = name
    return make
