"""Tensors."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from . import BasicTransform


class ToTensorV2(BasicTransform):
    """Colours first."""

    def apply(self, img: Any, **params: Any) -> Any:
        """A tensor."""
        found = torch.from_numpy(numpy.ascontiguousarray(img))
        return found.permute(2, 0, 1) if found.dim() == 3 else found[None]

    def apply_to_mask(self, img: Any, **params: Any) -> Any:
        """A tensor, in its order."""
        return torch.from_numpy(numpy.ascontiguousarray(img))


ToTensor = ToTensorV2
