"""Transformations of pictures and tensors; random ones draw as many numbers as they need."""

from __future__ import annotations

import random
from typing import Any

import torch

from ....context import run
from ....inert import others
from ....sizes import smaller_pictures
from . import functional as F
from .functional import InterpolationMode

__all__ = ["F", "InterpolationMode", "functional"]
functional = F


def smaller(size: Any) -> Any:
    """The size of pictures, at most that of a run that reduces sizes."""
    return smaller_pictures(run(), size)


class Transformation(torch.nn.Module):
    """One that may be a part of a network, as most of the real ones may."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        torch.nn.Module.__init__(made)
        return made


class Compose:
    """One after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, picture: Any) -> Any:
        for transform in self.transforms:
            picture = transform(picture)
        return picture


class Lambda:
    """A function of the user's."""

    def __init__(self, lambd: Any) -> None:
        self.lambd = lambd

    def __call__(self, picture: Any) -> Any:
        return self.lambd(picture)


class ToTensor:
    """Bytes to numbers from 0 to 1."""

    def __call__(self, picture: Any) -> torch.Tensor:
        return F.to_tensor(picture)


class PILToTensor:
    """Bytes, channels first."""

    def __call__(self, picture: Any) -> torch.Tensor:
        return F.pil_to_tensor(picture)


class ConvertImageDtype(Transformation):
    """Another type, on its own scale."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        return F.convert_image_dtype(picture, self.dtype)


class ToPILImage:
    """A picture of a tensor."""

    def __init__(self, mode: Any = None) -> None:
        self.mode = mode

    def __call__(self, picture: Any) -> Any:
        return F.to_pil_image(picture, self.mode)


class Normalize(torch.nn.Module):
    """Subtract the mean and divide by the deviation of each channel."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        """The normalized tensor."""
        return F.normalize(tensor, self.mean, self.std, self.inplace)


class Resize(Transformation):
    """To a size, or the shorter side to one."""

    def __init__(self, size: Any, interpolation: Any = 2, *args: Any, **kwargs: Any) -> None:
        self.size, self.interpolation = smaller(size), interpolation

    def forward(self, picture: Any) -> Any:
        return F.resize(picture, self.size, self.interpolation)


Scale = Resize


class CenterCrop(Transformation):
    """The middle."""

    def __init__(self, size: Any) -> None:
        self.size = smaller(size)

    def forward(self, picture: Any) -> Any:
        return F.center_crop(picture, self.size)


class Pad(Transformation):
    """A frame around it."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, picture: Any) -> Any:
        return F.pad(picture, self.padding, self.fill, self.padding_mode)


class RandomCrop(Transformation):
    """A part somewhere."""

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, *args: Any, **kwargs: Any
    ) -> None:
        self.size, self.padding, self.needed = F.pair(smaller(size)), padding, pad_if_needed

    def forward(self, picture: Any) -> Any:
        if self.padding:
            picture = F.pad(picture, self.padding)
        height, width = F.extent(picture)
        short = (max(0, self.size[1] - width), max(0, self.size[0] - height))
        if self.needed and any(short):
            picture = F.pad(picture, (short[0], short[1]))
            height, width = F.extent(picture)
        if height < self.size[0] or width < self.size[1]:
            raise ValueError(
                f"Required crop size {self.size} is larger than input image size {(height, width)}"
            )
        top = int(torch.randint(0, height - self.size[0] + 1, (1,)))
        left = int(torch.randint(0, width - self.size[1] + 1, (1,)))
        return F.crop(picture, top, left, *self.size)


class RandomResizedCrop(Transformation):
    """A part of any shape, at a size."""

    def __init__(
        self, size: Any, scale: Any = (0.08, 1.0), ratio: Any = (3 / 4, 4 / 3), *args: Any, **kwargs: Any
    ):
        self.size, self.scale = F.pair(smaller(size)), scale

    def forward(self, picture: Any) -> Any:
        height, width = F.extent(picture)
        share = float(torch.empty(1).uniform_(*self.scale)) ** 0.5
        high, wide = max(1, int(height * share)), max(1, int(width * share))
        top = int(torch.randint(0, height - high + 1, (1,)))
        left = int(torch.randint(0, width - wide + 1, (1,)))
        return F.resize(F.crop(picture, top, left, high, wide), self.size)


RandomSizedCrop = RandomResizedCrop


class _Sometimes(Transformation):
    def __init__(self, p: float = 0.5, *args: Any, **kwargs: Any) -> None:
        self.p = p

    def change(self, picture: Any) -> Any:
        """What happens to a picture that is chosen."""
        return picture

    def forward(self, picture: Any) -> Any:
        return self.change(picture) if float(torch.rand(1)) < self.p else picture


class RandomHorizontalFlip(_Sometimes):
    """Left is right, sometimes."""

    def change(self, picture: Any) -> Any:
        """Mirrored."""
        return F.hflip(picture)


class RandomVerticalFlip(_Sometimes):
    """Up is down, sometimes."""

    def change(self, picture: Any) -> Any:
        """Mirrored."""
        return F.vflip(picture)


class Grayscale(Transformation):
    """Without colours."""

    def __init__(self, num_output_channels: int = 1) -> None:
        self.count = num_output_channels

    def forward(self, picture: Any) -> Any:
        return F.to_grayscale(picture, self.count)


class RandomGrayscale(_Sometimes):
    """Without colours, sometimes."""

    def change(self, picture: Any) -> Any:
        """Grey, with as many channels as before."""
        return F.to_grayscale(picture, 3)


class RandomRotation(Transformation):
    """Turned."""

    def __init__(self, degrees: Any, *args: Any, **kwargs: Any) -> None:
        self.degrees = (-degrees, degrees) if isinstance(degrees, (int, float)) else degrees

    def forward(self, picture: Any) -> Any:
        return F.rotate(picture, float(torch.empty(1).uniform_(*self.degrees)))


class _Same(Transformation):
    """Changes values only, which are made up here anyway."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, picture: Any) -> Any:
        return picture


class ColorJitter(_Same):
    """Colours as they are."""


class RandomAffine(_Same):
    """The place as it is."""


class RandomPerspective(_Same):
    """The view as it is."""


class GaussianBlur(_Same):
    """As sharp as it is."""


class RandomErasing(_Same):
    """Nothing is erased."""


class AutoAugment(_Same):
    """Nothing is changed."""


class RandAugment(_Same):
    """Nothing is changed."""


class TrivialAugmentWide(_Same):
    """Nothing is changed."""


class AugMix(_Same):
    """Nothing is changed."""


class ElasticTransform(_Same):
    """The shape as it is."""


class RandomAdjustSharpness(_Same):
    """As sharp as it is."""


class RandomAutocontrast(_Same):
    """Colours as they are."""


class RandomEqualize(_Same):
    """Colours as they are."""


class RandomInvert(_Same):
    """Colours as they are."""


class RandomPosterize(_Same):
    """Colours as they are."""


class RandomSolarize(_Same):
    """Colours as they are."""


class RandomApply(Transformation):
    """Several, sometimes."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        self.transforms, self.p = transforms, p

    def forward(self, picture: Any) -> Any:
        if float(torch.rand(1)) < self.p:
            for transform in self.transforms:
                picture = transform(picture)
        return picture


class RandomChoice:
    """One of several."""

    def __init__(self, transforms: Any, p: Any = None) -> None:
        self.transforms = transforms

    def __call__(self, picture: Any) -> Any:
        return random.choice(self.transforms)(picture)


class RandomOrder:
    """All of several, in any order."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, picture: Any) -> Any:
        for transform in random.sample(list(self.transforms), len(self.transforms)):
            picture = transform(picture)
        return picture


class FiveCrop(Transformation):
    """The corners and the middle."""

    def __init__(self, size: Any) -> None:
        self.size = F.pair(size)

    def forward(self, picture: Any) -> Any:
        return tuple(F.center_crop(picture, self.size) for _ in range(5))


__getattr__ = others(__name__)
