"""What is done to pictures before a network sees them, and to what it finds in them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from .....context import run
from .....sizes import smaller_pictures
from .image_list import ImageList

STRIDE = 32
"""What divides the sides of a batch."""


def resize_boxes(boxes: torch.Tensor, original_size: Any, new_size: Any) -> torch.Tensor:
    """The boxes in a picture of another height and width."""
    down, right = (new / old for new, old in zip(new_size, original_size))
    return boxes * boxes.new_tensor([right, down, right, down])


class GeneralizedRCNNTransform(nn.Module):
    """Normalized pictures with a shorter side of ``min_size``, at most that of a run that reduces sizes."""

    def __init__(
        self, min_size: Any, max_size: int, image_mean: Any, image_std: Any, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__()
        sides = min_size if isinstance(min_size, (list, tuple)) else (min_size,)
        self.min_size, self.max_size = tuple(smaller_pictures(run(), one) for one in sides), max_size
        self.image_mean, self.image_std = image_mean, image_std

    def normalize(self, image: torch.Tensor) -> torch.Tensor:
        """Each channel on its scale."""
        if not image.is_floating_point():
            raise TypeError(
                f"Expected input images to be of floating type, but found type {image.dtype} instead"
            )
        mean, spread = (image.new_tensor(one)[:, None, None] for one in (self.image_mean, self.image_std))
        return (image - mean) / spread

    def resize(self, image: torch.Tensor, target: Any) -> tuple[torch.Tensor, Any]:
        """A picture and what is in it."""
        before = image.shape[-2:]
        side = self.min_size[-1]
        scale = min(side / min(before), self.max_size / max(before))
        after = [math.floor(one * scale) for one in before]
        image = nn.functional.interpolate(image[None], after, mode="bilinear", align_corners=False)[0]
        if target is not None:
            target = {**target, "boxes": resize_boxes(target["boxes"], before, after)}
            if "masks" in target:
                masks = target["masks"][:, None].float()
                target["masks"] = nn.functional.interpolate(masks, after)[:, 0].byte()
        return image, target

    def forward(self, images: Any, targets: Any = None) -> tuple[ImageList, Any]:
        """A batch, and what is in each of its pictures."""
        pairs = [
            self.resize(self.normalize(image), target)
            for image, target in zip(images, targets or [None] * len(images))
        ]
        sizes = [(one.shape[-2], one.shape[-1]) for one, _ in pairs]
        high, wide = (math.ceil(max(side) / STRIDE) * STRIDE for side in zip(*sizes))
        padded = [
            nn.functional.pad(one, (0, wide - one.shape[-1], 0, high - one.shape[-2])) for one, _ in pairs
        ]
        found = [target for _, target in pairs] if targets is not None else None
        return ImageList(torch.stack(padded), sizes), found

    def postprocess(self, result: list[Any], image_shapes: Any, original_image_sizes: Any) -> list[Any]:
        """What was found, in the pictures as they were."""
        if self.training:
            return result
        for found, shape, original in zip(result, image_shapes, original_image_sizes):
            found["boxes"] = resize_boxes(found["boxes"], shape, original)
            if "masks" in found:
                found["masks"] = pasted(found["masks"], found["boxes"], original)
        return result


def pasted(masks: torch.Tensor, boxes: torch.Tensor, size: Any) -> torch.Tensor:
    """Small masks at the places of their boxes: N x 1 x height x width."""
    sides = (boxes[:, 2:] - boxes[:, :2]).clamp(min=1e-3)
    rows = torch.arange(size[0], device=boxes.device) + 0.5
    columns = torch.arange(size[1], device=boxes.device) + 0.5
    down = (rows - boxes[:, 1:2]) / sides[:, 1:2] * 2 - 1
    right = (columns - boxes[:, 0:1]) / sides[:, 0:1] * 2 - 1
    shape = (len(boxes), size[0], size[1])
    grid = torch.stack([right[:, None, :].expand(shape), down[:, :, None].expand(shape)], -1)
    return nn.functional.grid_sample(masks, grid, align_corners=False)
