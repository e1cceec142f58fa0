"""The functions of the second version: those of the first, and those for tensors that say what they are."""

from __future__ import annotations

from typing import Any

import torch

from ...ops.boxes import box_convert
from ...tv_tensors import BoundingBoxes, BoundingBoxFormat, Image, TVTensor, wrap
from .. import functional as F

horizontal_flip, vertical_flip = F.hflip, F.vflip
horizontal_flip_image, vertical_flip_image, resize_image = F.hflip, F.vflip, F.resize
get_num_channels = F.get_image_num_channels


def get_size(inpt: Any) -> list[int]:
    """Height and width of a picture, or of that in which boxes are."""
    return list(inpt.canvas_size if isinstance(inpt, BoundingBoxes) else F.extent(inpt))


def to_image(inpt: Any) -> Any:
    """A picture of PIL, an array or a tensor as bytes or numbers, channels first."""
    return Image(F.pil_to_tensor(inpt))


def to_dtype(inpt: torch.Tensor, dtype: Any = torch.float, scale: bool = False) -> Any:
    """Another type, on its own scale if that is asked for."""
    plain = inpt.as_subclass(torch.Tensor)
    changed = F.convert_image_dtype(plain, dtype) if scale else plain.to(dtype)
    return wrap(changed, like=inpt) if isinstance(inpt, TVTensor) else changed


def convert_bounding_box_format(
    inpt: torch.Tensor, old_format: Any = None, new_format: Any = None, *args: Any
) -> torch.Tensor:
    """The boxes told in another way."""
    old = inpt.format if isinstance(inpt, BoundingBoxes) else old_format
    names = [one.upper() if isinstance(one, str) else one.name for one in (old, new_format)]
    changed = box_convert(inpt.as_subclass(torch.Tensor), *(one.lower() for one in names))
    if isinstance(inpt, BoundingBoxes):
        changed = wrap(changed, like=inpt, format=BoundingBoxFormat[names[1]])
    return changed


def __getattr__(name: str) -> Any:
    return getattr(F, name)
