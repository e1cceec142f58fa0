"""albumentations: sizes, numbers and tensors as the real ones give them; other changes change nothing."""

from __future__ import annotations

import importlib
from typing import Any

import numpy

Given = dict[str, Any]


class BasicTransform:
    """Any transformation: of arrays under names, which stay as they are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __call__(self, *args: Any, force_apply: bool = False, **data: Any) -> Given:
        return self.applied(data)

    def applied(self, data: Given) -> Given:
        """What becomes of all that was given."""
        found = {}
        for name, value in data.items():
            if name.startswith("image") and not isinstance(value, (list, tuple)):
                found[name] = self.apply(numpy.asarray(value))
            elif name == "masks":
                found[name] = [self.apply_to_mask(numpy.asarray(one)) for one in value]
            elif name.startswith("mask"):
                found[name] = self.apply_to_mask(numpy.asarray(value))
            else:
                found[name] = value
        return found

    def apply(self, img: Any, **params: Any) -> Any:
        """A picture."""
        return img

    def apply_to_mask(self, img: Any, **params: Any) -> Any:
        """A picture of classes."""
        return img


ImageOnlyTransform = DualTransform = NoOp = BasicTransform


class Compose(BasicTransform):
    """One after the other; one of several is the first of them."""

    def __init__(self, transforms: Any = (), *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.transforms = list(transforms)

    def applied(self, data: Given) -> Given:
        for one in self.transforms:
            data = one(**data)
        return data


Sequential = SomeOf = Compose


class OneOf(Compose):
    """One of several."""

    def applied(self, data: Given) -> Given:
        return self.transforms[0](**data) if self.transforms else data


class Resize(BasicTransform):
    """Pictures of another size."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        size = kwargs.get("size", args[0] if args and isinstance(args[0], (tuple, list)) else None)
        pair = size or (
            kwargs.get("height", args[0] if args else None),
            kwargs.get("width", (*args, None, None)[1]),
        )
        self.height, self.width = pair if isinstance(pair, (tuple, list)) else (pair, pair)

    def apply(self, img: Any, **params: Any) -> Any:
        """The nearest value of each place."""
        height, width = int(self.height or img.shape[0]), int(self.width or self.height or img.shape[1])
        rows, columns = (numpy.arange(new) * old // new for new, old in zip((height, width), img.shape))
        return img[rows][:, columns]

    apply_to_mask = apply


RandomCrop = CenterCrop = RandomResizedCrop = RandomSizedCrop = CropNonEmptyMaskIfExists = Resize
RandomCropNearBBox = RandomSizedBBoxSafeCrop = Resize


class LongestMaxSize(Resize):
    """A square."""

    def __init__(self, max_size: int = 1024, *args: Any, **kwargs: Any) -> None:
        super().__init__(max_size, max_size)


SmallestMaxSize = LongestMaxSize


class PadIfNeeded(Resize):
    """Pictures that are not smaller."""

    def __init__(self, min_height: int = 1024, min_width: int = 1024, *args: Any, **kwargs: Any) -> None:
        super().__init__(min_height, min_width)

    def apply(self, img: Any, **params: Any) -> Any:
        """Repeated where it is too small."""
        small = img.shape[0] < self.height or img.shape[1] < self.width
        return super().apply(img) if small else img

    apply_to_mask = apply


class Normalize(BasicTransform):
    """Around 0."""

    def apply(self, img: Any, **params: Any) -> Any:
        """By the mean and the deviation that were given."""
        mean = self.kwargs.get("mean", (*self.args, (0.485, 0.456, 0.406))[0])
        deviation = self.kwargs.get("std", (*self.args, None, None)[1] or (0.229, 0.224, 0.225))
        most = self.kwargs.get("max_pixel_value", 255.0)
        count = img.shape[2] if img.ndim > 2 else 1
        mean, deviation = (numpy.resize(numpy.asarray(one, float), count) for one in (mean, deviation))
        return ((img / most - mean) / deviation).astype(numpy.float32)


class ToFloat(BasicTransform):
    """Between 0 and 1."""

    def apply(self, img: Any, **params: Any) -> Any:
        """By the largest value."""
        return (img / (self.kwargs.get("max_value") or 255.0)).astype(numpy.float32)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("pytorch", "core", "augmentations"):
        return importlib.import_module(__name__ + ".pytorch") if name == "pytorch" else BasicTransform
    return BasicTransform
