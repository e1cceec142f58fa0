"""The second version: a picture changes together with its masks and boxes, in whatever they stand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from .....inert import others
from ... import transforms as first
from ...tv_tensors import BoundingBoxes, BoundingBoxFormat, Image, Mask, TVTensor, Video, wrap
from . import functional
from .mixing import CutMix, MixUp

__all__ = ["CutMix", "InterpolationMode", "MixUp", "functional"]
InterpolationMode = first.InterpolationMode


def leaves(value: Any) -> list[Any]:
    """What stands in lists, tuples and dictionaries."""
    if isinstance(value, dict):
        return [one for inner in value.values() for one in leaves(inner)]
    if isinstance(value, (list, tuple)):
        return [one for inner in value for one in leaves(inner)]
    return [value]


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same lists, tuples and dictionaries with each of their leaves changed."""
    if isinstance(value, dict):
        return type(value)((key, changed(inner, change)) for key, inner in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(changed(inner, change) for inner in value))
    if isinstance(value, (list, tuple)):
        return type(value)(changed(inner, change) for inner in value)
    return change(value)


def is_picture(value: Any) -> bool:
    """Whether a value says that it is a picture or a film."""
    return isinstance(value, (Image, Video)) or hasattr(value, "getbands")


def is_plain(value: Any) -> bool:
    """Whether a value is a tensor that says nothing of itself."""
    return isinstance(value, torch.Tensor) and not isinstance(value, TVTensor)


def pictures_of(inputs: Any) -> list[Any]:
    """The pictures of a sample: those that say so, else the first plain tensor."""
    every = leaves(inputs)
    return [one for one in every if is_picture(one)] or [one for one in every if is_plain(one)][:1]


class Transform(torch.nn.Module):
    """What scripts derive their own from: pictures, masks and boxes are changed by what is drawn once."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """What is drawn once for a sample."""
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One of them, changed."""
        return inpt

    def forward(self, *inputs: Any) -> Any:
        """One value, or as many as are given."""
        return self._whole(inputs if len(inputs) > 1 else inputs[0])

    def _whole(self, sample: Any) -> Any:
        pictures = pictures_of(sample)
        params = self.make_params(leaves(sample))

        def change(value: Any) -> Any:
            meant = isinstance(value, TVTensor) or any(value is one for one in pictures)
            return self.transform(value, params) if meant else value

        return changed(sample, change)


class Compose(torch.nn.Module):
    """One after the other."""

    def __init__(self, transforms: Any) -> None:
        super().__init__()
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        """One value, or as many as are given."""
        for transform in self.transforms:
            found = transform(*inputs)
            inputs = found if len(inputs) > 1 else (found,)
        return inputs if len(inputs) > 1 else inputs[0]


class Places:
    """Where the pixels of a changed picture were before: masks and boxes go the same way."""

    def __init__(self, change: Callable[[Any], Any], size: list[int]) -> None:
        rows, columns = torch.meshgrid(*(torch.arange(float(side)) for side in size), indexing="ij")
        # What is added at the edges is 0 in all three.
        found = change(torch.stack([rows + 1, columns + 1, torch.ones(size)]))
        self.inside = found[2] > 0.5
        self.rows, self.columns = (
            (found[axis].round().long() - 1).clamp(0, size[axis] - 1) for axis in (0, 1)
        )

    def mask(self, mask: Mask) -> Any:
        """The nearest value of each pixel."""
        plain = mask.as_subclass(torch.Tensor)
        return wrap(plain[..., self.rows, self.columns] * self.inside.to(plain.dtype), like=mask)

    def boxes(self, boxes: BoundingBoxes) -> Any:
        """The boxes around what was within each of them, to a pixel; 0 where nothing is left."""
        corners = functional.convert_bounding_box_format(boxes, None, "XYXY").as_subclass(torch.Tensor)
        found = []
        for left, top, right, bottom in corners.tolist():
            across = (self.columns + 0.5 > left) & (self.columns + 0.5 < right) & self.inside
            down = (self.rows + 0.5 > top) & (self.rows + 0.5 < bottom)
            rows, columns = torch.where(across & down)
            if rows.numel():
                seen = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
                found.append([float(one) for one in seen])
            else:
                found.append([0.0] * 4)
        moved = torch.tensor(found, dtype=corners.dtype).reshape(-1, 4)
        settings = {"format": BoundingBoxFormat.XYXY, "canvas_size": tuple(self.inside.shape)}
        return functional.convert_bounding_box_format(wrap(moved, like=boxes, **settings), None, boxes.format)


def _together(name: str, moves: bool) -> type:
    """A transformation of the first version for whole samples, which ``moves`` pixels or changes values."""
    kind = getattr(first, name)

    def call(self: Any, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        pictures = pictures_of(sample)
        state = torch.get_rng_state()

        def again(value: Any) -> Any:
            # The same numbers are drawn for everything in a sample.
            torch.set_rng_state(state)
            plain = value.as_subclass(torch.Tensor) if isinstance(value, TVTensor) else value
            return kind.forward(self, plain)

        bound = [one for one in leaves(sample) if isinstance(one, (Mask, BoundingBoxes))] if moves else []
        places = Places(again, functional.get_size([*pictures, *bound][0])) if bound else None

        def change(value: Any) -> Any:
            if any(value is one for one in pictures):
                found = again(value)
                plain = isinstance(value, TVTensor) and isinstance(found, torch.Tensor)
                return wrap(found, like=value) if plain else found
            if places is not None and isinstance(value, Mask):
                return places.mask(value)
            return places.boxes(value) if places is not None and isinstance(value, BoundingBoxes) else value

        return changed(sample, change)

    return type(name, (kind,), {"forward": call, "__module__": __name__})


MOVING = (
    "Resize CenterCrop Pad RandomCrop RandomResizedCrop RandomHorizontalFlip RandomVerticalFlip "
    "RandomRotation"
).split()
COLOURING = (
    "Normalize ConvertImageDtype Grayscale RandomGrayscale ColorJitter RandomAffine RandomPerspective "
    "GaussianBlur RandomErasing AutoAugment RandAugment TrivialAugmentWide AugMix ElasticTransform "
    "RandomAdjustSharpness RandomAutocontrast RandomEqualize RandomInvert RandomPosterize RandomSolarize"
).split()
for _name in (*MOVING, *COLOURING):
    globals()[_name] = _together(_name, _name in MOVING)


class _Same(Transform):
    """Changes what is made up here anyway, or adds what is not there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()


class Identity(_Same):
    """Nothing is changed."""


class RandomPhotometricDistort(_Same):
    """Colours as they are."""


class RandomChannelPermutation(_Same):
    """Colours as they are."""


class RandomZoomOut(_Same):
    """As near as it is."""


class RandomIoUCrop(_Same):
    """Nothing is cut off."""


class GaussianNoise(_Same):
    """No noise is added."""


class JPEG(_Same):
    """Nothing is lost."""


class ClampBoundingBoxes(_Same):
    """Boxes are within their pictures."""


class ToImage(Transform):
    """Pictures of PIL, arrays and tensors as pictures, channels first."""

    def _whole(self, sample: Any) -> Any:
        pictures = pictures_of(sample)

        def change(value: Any) -> Any:
            array = type(value).__name__ == "ndarray" and value.ndim > 1
            return functional.to_image(value) if array or any(value is one for one in pictures) else value

        return changed(sample, change)


ToImageTensor = ToImage


class PILToTensor(ToImage):
    """Bytes, channels first."""


class ToTensor(ToImage):
    """Numbers from 0 to 1, channels first."""

    def _whole(self, sample: Any) -> Any:
        return ToDtype(torch.float32, scale=True)(super()._whole(sample))


class ToPILImage(Transform):
    """Pictures of PIL."""

    def __init__(self, mode: Any = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One of them."""
        picture = is_picture(inpt) or is_plain(inpt)
        return functional.to_pil_image(inpt, self.mode) if picture else inpt


class ToDtype(Transform):
    """Another type: of pictures, or of each kind of tensors that is named."""

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        self.dtype, self.scale = dtype, scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One of them."""
        if not isinstance(inpt, torch.Tensor):
            return inpt
        if isinstance(self.dtype, dict):
            wanted = self.dtype.get(type(inpt), self.dtype.get("others"))
        else:
            wanted = None if isinstance(inpt, (Mask, BoundingBoxes)) else self.dtype
        picture = not isinstance(inpt, (Mask, BoundingBoxes))
        return inpt if wanted is None else functional.to_dtype(inpt, wanted, self.scale and picture)


ConvertDtype = ToDtype


class ToPureTensor(Transform):
    """Tensors that say nothing of themselves."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One of them."""
        return inpt.as_subclass(torch.Tensor) if isinstance(inpt, TVTensor) else inpt


class ConvertBoundingBoxFormat(Transform):
    """Boxes told in another way."""

    def __init__(self, format: Any) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One of them."""
        boxes = isinstance(inpt, BoundingBoxes)
        return functional.convert_bounding_box_format(inpt, None, self.format) if boxes else inpt


class SanitizeBoundingBoxes(Transform):
    """Boxes without an extent are left out, and what belongs to them."""

    def __init__(self, min_size: float = 1.0, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.min_size = min_size

    def _whole(self, sample: Any) -> Any:
        boxes = next((one for one in leaves(sample) if isinstance(one, BoundingBoxes)), None)
        if boxes is None:
            return sample
        corners = functional.convert_bounding_box_format(boxes, None, "XYXY").as_subclass(torch.Tensor)
        kept = (corners[:, 2:] - corners[:, :2] >= self.min_size).all(1)
        pictures = pictures_of(sample)

        def change(value: Any) -> Any:
            beside = isinstance(value, torch.Tensor) and not any(value is one for one in pictures)
            if not beside or value.dim() == 0 or len(value) != len(kept):
                return value
            found = value.as_subclass(torch.Tensor)[kept]
            return wrap(found, like=value) if isinstance(value, TVTensor) else found

        return changed(sample, change)


class Lambda(Transform):
    """A function of the user's, for values of some kinds."""

    def __init__(self, lambd: Any, *types: type) -> None:
        super().__init__()
        self.lambd, self.types = lambd, types or (object,)

    def _whole(self, sample: Any) -> Any:
        return changed(sample, lambda one: self.lambd(one) if isinstance(one, self.types) else one)


class RandomApply(Compose):
    """Several, sometimes."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__(transforms)
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        """One value, or as many as are given."""
        if float(torch.rand(1)) < self.p:
            return super().forward(*inputs)
        return inputs if len(inputs) > 1 else inputs[0]


class RandomChoice(Compose):
    """One of several."""

    def __init__(self, transforms: Any, p: Any = None) -> None:
        super().__init__(transforms)

    def forward(self, *inputs: Any) -> Any:
        """One value, or as many as are given."""
        return random.choice(self.transforms)(*inputs)


class RandomOrder(Compose):
    """All of several, in any order."""

    def forward(self, *inputs: Any) -> Any:
        """One value, or as many as are given."""
        return Compose(random.sample(list(self.transforms), len(self.transforms)))(*inputs)


class UniformTemporalSubsample(Transform):
    """So many frames of a film, equally far apart."""

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One of them."""
        frames = inpt.shape[-4]
        chosen = torch.linspace(0, frames - 1, self.num_samples).long()
        found = inpt.index_select(-4, chosen)
        return wrap(found, like=inpt) if isinstance(inpt, TVTensor) else found


__getattr__ = others(__name__)
