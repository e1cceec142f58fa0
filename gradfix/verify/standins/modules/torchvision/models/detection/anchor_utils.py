"""Boxes at each place of each map, from which those of objects are found."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .image_list import ImageList


class AnchorGenerator(nn.Module):
    """Boxes of some sizes and shapes for each map."""

    def __init__(self, sizes: Any = ((128, 256, 512),), aspect_ratios: Any = ((0.5, 1.0, 2.0),)) -> None:
        super().__init__()
        self.sizes = tuple(one if isinstance(one, (list, tuple)) else (one,) for one in sizes)
        if not isinstance(aspect_ratios[0], (list, tuple)):
            aspect_ratios = (aspect_ratios,) * len(self.sizes)
        self.aspect_ratios = aspect_ratios
        self.cell_anchors = [self.generate_anchors(*both) for both in zip(self.sizes, aspect_ratios)]

    def generate_anchors(self, scales: Any, aspect_ratios: Any, *args: Any) -> torch.Tensor:
        """Around one place."""
        slopes = torch.as_tensor(aspect_ratios, dtype=torch.float32).sqrt()
        sizes = torch.as_tensor(scales, dtype=torch.float32)
        wide, high = (1 / slopes[:, None] * sizes).flatten(), (slopes[:, None] * sizes).flatten()
        return (torch.stack([-wide, -high, wide, high], 1) / 2).round()

    def num_anchors_per_location(self) -> list[int]:
        """How many there are at each place of each map."""
        return [len(size) * len(ratio) for size, ratio in zip(self.sizes, self.aspect_ratios)]

    def forward(self, image_list: ImageList, feature_maps: list[torch.Tensor]) -> list[torch.Tensor]:
        """Those of each picture, N x 4: they are the same, as the pictures of a batch are equally large."""
        high, wide = image_list.tensors.shape[-2:]
        found = []
        for cells, one in zip(self.cell_anchors, feature_maps):
            rows = torch.arange(one.shape[-2], device=one.device) * (high // one.shape[-2])
            columns = torch.arange(one.shape[-1], device=one.device) * (wide // one.shape[-1])
            down, right = (part.flatten() for part in torch.meshgrid(rows, columns, indexing="ij"))
            places = torch.stack([right, down, right, down], 1)
            found.append((places[:, None] + cells.to(one)).reshape(-1, 4))
        return [torch.cat(found)] * len(image_list.image_sizes)
