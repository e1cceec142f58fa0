"""kornia.augmentation: pictures are turned around and cut as the real ones are; colours stay as they are."""

from __future__ import annotations

from typing import Any

import torch

from ...inert import others


class Same(torch.nn.Module):
    """A change that leaves pictures as they are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.p = kwargs.get("p", 0.5)

    def forward(self, input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Pictures, one or several."""
        return input


ColorJitter = ColorJiggle = RandomErasing = RandomAffine = RandomRotation = RandomPerspective = Same
RandomGrayscale = RandomGaussianBlur = RandomGaussianNoise = RandomSolarize = RandomSharpness = Same


class RandomHorizontalFlip(Same):
    """Some of the pictures, turned around."""

    along = -1

    def forward(self, input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """A batch of pictures."""
        pictures = input if input.dim() == 4 else input[None]
        turned = torch.rand(len(pictures), 1, 1, 1, device=input.device) < self.p
        found = torch.where(turned, pictures.flip(self.along), pictures)
        return found if input.dim() == 4 else found[0]


class RandomVerticalFlip(RandomHorizontalFlip):
    """Some of the pictures, upside down."""

    along = -2


class Normalize(Same):
    """Pictures with other means and deviations."""

    def __init__(self, mean: Any, std: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.mean, self.std = torch.as_tensor(mean).float(), torch.as_tensor(std).float()

    def forward(self, input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Of each channel."""
        mean, std = (one.reshape(-1, 1, 1).to(input.device) for one in (self.mean, self.std))
        return (input - mean) / std


class Resize(Same):
    """Pictures of another size."""

    def __init__(self, size: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def forward(self, input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """All of each picture."""
        pictures = input if input.dim() == 4 else input[None]
        found = torch.nn.functional.interpolate(pictures, self.size, mode="bilinear", align_corners=False)
        return found if input.dim() == 4 else found[0]


class CenterCrop(Resize):
    """The middle of pictures."""

    def forward(self, input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As much as there is."""
        height, width = self.size
        if input.shape[-2] < height or input.shape[-1] < width:
            return super().forward(input)
        top, left = (input.shape[-2] - height) // 2, (input.shape[-1] - width) // 2
        return input[..., top : top + height, left : left + width]


class RandomCrop(CenterCrop):
    """A part of pictures."""


class RandomResizedCrop(Resize):
    """A part of pictures, brought to a size."""


class AugmentationSequential(torch.nn.Sequential):
    """Changes one after the other."""

    def __init__(self, *changes: Any, **kwargs: Any) -> None:
        super().__init__(*changes)


ImageSequential = VideoSequential = AugmentationSequential
__getattr__ = others(__name__)
