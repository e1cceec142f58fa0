"""What networks that find objects have in common."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Detector(nn.Module):
    """Pictures are prepared, maps made of them, and what is found goes back to the pictures as they were."""

    def __init__(self, backbone: nn.Module, transform: nn.Module) -> None:
        super().__init__()
        self.transform, self.backbone = transform, backbone

    def _found(self, images: Any, features: Any, targets: Any) -> tuple[list[Any], dict[str, torch.Tensor]]:
        """What is found in each picture, and the losses."""
        raise NotImplementedError

    def forward(self, images: Any, targets: Any = None) -> Any:
        """In training the losses by their names, else for each picture what is in it.

        ``images`` are tensors, channels x height x width, and ``targets`` dictionaries: ``boxes`` N x 4,
        ``labels`` N, and for some networks ``masks`` N x height x width.
        """
        if self.training:
            if targets is None:
                raise AssertionError("targets should not be none when in training mode")
            for target in targets:
                shape = list(getattr(target["boxes"], "shape", ()))
                if len(shape) != 2 or shape[1] != 4:
                    raise AssertionError(
                        f"Expected target boxes to be a tensor of shape [N, 4], got {shape}."
                    )
        before = [(one.shape[-2], one.shape[-1]) for one in images]
        batch, targets = self.transform(images, targets)
        features = self.backbone(batch.tensors)
        if isinstance(features, torch.Tensor):
            features = {"0": features}
        found, losses = self._found(batch, features, targets)
        if self.training:
            return losses
        back: Any = self.transform.postprocess
        return back(found, batch.image_sizes, before)


class GeneralizedRCNN(Detector):
    """Regions first, then what is in each of them."""

    def __init__(self, backbone: nn.Module, rpn: nn.Module, roi_heads: nn.Module, transform: nn.Module):
        super().__init__(backbone, transform)
        self.rpn, self.roi_heads = rpn, roi_heads

    def _found(self, images: Any, features: Any, targets: Any) -> tuple[list[Any], dict[str, torch.Tensor]]:
        regions, first = self.rpn(images, features, targets)
        found, second = self.roi_heads(features, regions, images.image_sizes, targets)
        return found, {**second, **first}
