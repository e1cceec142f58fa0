"""Pictures of several sizes as one batch."""

from __future__ import annotations

import torch


class ImageList:
    """A batch that is as large as its largest picture, and the height and width of each."""

    def __init__(self, tensors: torch.Tensor, image_sizes: list[tuple[int, int]]) -> None:
        self.tensors, self.image_sizes = tensors, image_sizes

    def to(self, device: torch.device) -> ImageList:
        """On another device."""
        return ImageList(self.tensors.to(device), self.image_sizes)
