"""Functions on pictures of PIL and on tensors, channels first."""

from __future__ import annotations

import enum
from typing import Any

import torch

from ....inert import others
from ....samples import image, pil


class InterpolationMode(enum.Enum):
    """Ways of resampling."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def pair(size: Any) -> tuple[int, int]:
    """Height and width of a size."""
    if isinstance(size, (int, float)):
        return int(size), int(size)
    return (int(size[0]), int(size[0])) if len(size) == 1 else (int(size[0]), int(size[1]))


def extent(picture: Any) -> tuple[int, int]:
    """Height and width of a picture or a tensor."""
    if isinstance(picture, torch.Tensor):
        return picture.shape[-2], picture.shape[-1]
    return picture.size[1], picture.size[0]


def get_dimensions(picture: Any) -> list[int]:
    """Channels, height and width."""
    tensor = isinstance(picture, torch.Tensor)
    channels = (picture.shape[-3] if picture.dim() > 2 else 1) if tensor else len(picture.getbands())
    return [channels, *extent(picture)]


def get_image_size(picture: Any) -> list[int]:
    """Width and height."""
    return [*extent(picture)][::-1]


def get_image_num_channels(picture: Any) -> int:
    """Channels."""
    return get_dimensions(picture)[0]


_get_image_size, _get_image_num_channels = get_image_size, get_image_num_channels


def pil_to_tensor(picture: Any) -> torch.Tensor:
    """Bytes, channels first."""
    if isinstance(picture, torch.Tensor):
        return picture
    if not hasattr(picture, "getbands"):
        values = torch.as_tensor(picture)
        return (values[..., None] if values.dim() == 2 else values).permute(2, 0, 1).contiguous()
    if picture.mode == "1":
        picture = picture.convert("L")
    flat = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    return flat.reshape(picture.size[1], picture.size[0], -1).permute(2, 0, 1).contiguous()


def to_tensor(picture: Any) -> torch.Tensor:
    """Numbers from 0 to 1, channels first."""
    values = pil_to_tensor(picture)
    return values.to(torch.get_default_dtype()) / 255 if values.dtype == torch.uint8 else values


def convert_image_dtype(picture: torch.Tensor, dtype: Any = torch.float) -> torch.Tensor:
    """Another type, on its own scale."""
    if picture.is_floating_point() == dtype.is_floating_point:
        return picture.to(dtype)
    return picture.to(dtype) / 255 if dtype.is_floating_point else (picture * 255).to(dtype)


def to_pil_image(picture: Any, mode: Any = None) -> Any:
    """A picture of a tensor, channels first, or of an array, channels last."""
    if isinstance(picture, torch.Tensor):
        values = picture.detach()
        values = values[None] if values.dim() == 2 else values
        if values.is_floating_point():
            values = (values * 255).clamp(0, 255)
        found = values.to(torch.uint8).permute(1, 2, 0)
    else:
        found = torch.as_tensor(picture)
        if found.dim() < 2:
            raise ValueError(f"expected 3D tensor, got {found.dim()}D tensor, for a picture")
        if found.is_floating_point():
            found = (found * 255).clamp(0, 255)
        found = found.to(torch.uint8)
    shown = image(found if found.dim() == 2 or found.shape[-1] in (1, 3) else found[..., :3])
    return shown if mode in (None, shown.mode) else shown.convert(mode)


def normalize(tensor: torch.Tensor, mean: Any, std: Any, inplace: bool = False) -> torch.Tensor:
    """Subtract the mean and divide by the deviation of each channel.

    Of numbers for three channels a picture in grey takes the first, as it did in older versions.
    """
    tensor = tensor if inplace else tensor.clone()
    middle = torch.as_tensor(mean, dtype=tensor.dtype).reshape(-1, 1, 1)
    spread = torch.as_tensor(std, dtype=tensor.dtype).reshape(-1, 1, 1)
    if tensor.shape[-3] == 1:
        middle, spread = middle[:1], spread[:1]
    return tensor.sub_(middle).div_(spread)


def resize(picture: Any, size: Any, interpolation: Any = 2, *args: Any, **kwargs: Any) -> Any:
    """To a size, or the shorter side to one."""
    height, width = extent(picture)
    if isinstance(size, int) or len(size) == 1:
        short = size if isinstance(size, int) else size[0]
        scale = short / min(height, width)
        target = (short, int(width * scale)) if height <= width else (int(height * scale), short)
    else:
        target = pair(size)
    if isinstance(picture, torch.Tensor):
        batch = picture if picture.dim() == 4 else picture[None]
        scaled = torch.nn.functional.interpolate(batch.float(), target, mode="bilinear", align_corners=False)
        return (scaled if picture.dim() == 4 else scaled[0]).to(picture.dtype)
    nearest = interpolation in (0, InterpolationMode.NEAREST)
    return picture.resize((target[1], target[0]), 0 if nearest else 2)


def crop(picture: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part."""
    if isinstance(picture, torch.Tensor):
        return picture[..., top : top + height, left : left + width]
    return picture.crop((left, top, left + width, top + height))


def center_crop(picture: Any, output_size: Any) -> Any:
    """The middle."""
    size = pair(output_size)
    height, width = extent(picture)
    if height < size[0] or width < size[1]:
        picture = pad(picture, (max(0, (size[1] - width + 1) // 2), max(0, (size[0] - height + 1) // 2)))
        height, width = extent(picture)
    return crop(picture, round((height - size[0]) / 2), round((width - size[1]) / 2), *size)


def resized_crop(
    picture: Any, top: int, left: int, height: int, width: int, size: Any, *args: Any, **kwargs: Any
) -> Any:
    """A part at a size."""
    return resize(crop(picture, top, left, height, width), size)


def pad(picture: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """A frame around it."""
    sides = (padding, padding) if isinstance(padding, int) else tuple(padding)
    left, top, right, bottom = sides * 2 if len(sides) == 2 else sides * 4 if len(sides) == 1 else sides
    if isinstance(picture, torch.Tensor):
        return torch.nn.functional.pad(picture, (left, right, top, bottom))
    return picture.crop((-left, -top, picture.size[0] + right, picture.size[1] + bottom))


def hflip(picture: Any) -> Any:
    """Mirrored."""
    return picture.flip(-1) if isinstance(picture, torch.Tensor) else picture.transpose(0)


def vflip(picture: Any) -> Any:
    """Upside down."""
    return picture.flip(-2) if isinstance(picture, torch.Tensor) else picture.transpose(1)


def rotate(picture: Any, angle: float, *args: Any, **kwargs: Any) -> Any:
    """Turned; a tensor by the nearest half turn."""
    if isinstance(picture, torch.Tensor):
        return picture.flip((-1, -2)) if round(angle / 180) % 2 else picture
    return picture.rotate(angle)


def to_grayscale(picture: Any, num_output_channels: int = 1) -> Any:
    """Without colours."""
    if isinstance(picture, torch.Tensor):
        return picture.mean(-3, keepdim=True).expand(*picture.shape[:-3], num_output_channels, -1, -1)
    grey = picture.convert("L")
    return grey if num_output_channels == 1 else grey.convert("RGB")


rgb_to_grayscale = to_grayscale


def _same(picture: Any, *args: Any, **kwargs: Any) -> Any:
    return picture


adjust_brightness = adjust_contrast = adjust_saturation = adjust_hue = adjust_gamma = affine = _same
gaussian_blur = erase = _same


__getattr__ = others(__name__)


__all__ = ["pil"]
