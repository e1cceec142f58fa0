"""Tensors that say what they are: pictures, films, masks, boxes."""

from __future__ import annotations

import enum
from typing import Any

import torch

from .transforms.functional import pil_to_tensor

__all__ = ["BoundingBoxFormat", "BoundingBoxes", "Image", "Mask", "TVTensor", "Video", "wrap"]

KEEPING = (torch.Tensor.clone, torch.Tensor.to, torch.Tensor.detach, torch.Tensor.requires_grad_)
"""What gives the same kind of tensor again; all else gives plain ones."""


class TVTensor(torch.Tensor):
    """A tensor that says what it is, until something is computed with it."""

    def __new__(
        cls,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        values = pil_to_tensor(data) if hasattr(data, "getbands") else torch.as_tensor(data)
        made = values.to(device=device, dtype=dtype).as_subclass(cls)
        vars(made).update(kwargs)
        return made if requires_grad is None else made.requires_grad_(requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        return wrap(self.as_subclass(torch.Tensor).detach().clone(), like=self)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*args, **(kwargs or {}))
        if func in KEEPING and isinstance(args[0], TVTensor) and type(found) is torch.Tensor:
            return wrap(found, like=args[0])
        return found


class Image(TVTensor):
    """... x channels x height x width."""

    def __new__(cls, data: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls, data, **kwargs)
        return made if made.dim() > 2 else wrap(made[None], like=made)


class Video(TVTensor):
    """... x time x channels x height x width."""


class Mask(TVTensor):
    """... x height x width."""


class BoundingBoxFormat(enum.Enum):
    """Ways of telling a box."""

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"


class BoundingBoxes(TVTensor):
    """N x 4, in a picture of the height and width ``canvas_size``."""

    format: BoundingBoxFormat
    canvas_size: tuple[int, int]

    def __new__(cls, data: Any, *, format: Any, canvas_size: Any, **kwargs: Any) -> Any:
        kind = BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
        made = super().__new__(cls, data, **kwargs)
        made = made if made.dim() > 1 else made[None].as_subclass(cls)
        made.format, made.canvas_size = kind, tuple(canvas_size)
        return made


def wrap(wrappee: torch.Tensor, *, like: Any, **kwargs: Any) -> Any:
    """A tensor that says it is what ``like`` is."""
    made = wrappee.as_subclass(type(like))
    vars(made).update({**vars(like), **kwargs})
    return made


def set_return_type(return_type: str) -> None:
    """What is computed with them stays plain."""
