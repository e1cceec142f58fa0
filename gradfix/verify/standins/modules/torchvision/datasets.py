"""Data sets: those of which the shapes are known, and folders of pictures."""

from __future__ import annotations

import os
from typing import Any

import torch

from ... import media
from ...context import run
from ...inert import others
from ...samples import KINDS, Classes, Pictures, folder_of_classes, image, is_made, pil

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class VisionDataset(torch.utils.data.Dataset[Any]):
    """A data set with transformations."""

    def __init__(
        self, root: Any = None, transforms: Any = None, transform: Any = None, target_transform: Any = None
    ):
        self.root = root
        self.transforms = transforms
        self.transform = transform
        self.target_transform = target_transform


def _positional(name: str) -> tuple[str, ...]:
    third = {"SVHN": "split", "STL10": "split", "CelebA": "split", "EMNIST": "split", "LSUN": "classes"}.get(
        name, "train"
    )
    if name == "FakeData":
        return ("size", "image_size", "num_classes", "transform", "target_transform")
    if name == "STL10":
        return ("root", third, "folds", "transform", "target_transform", "download")
    if name == "CelebA":
        return ("root", third, "target_type", "transform", "target_transform", "download")
    if name == "ImageNet":
        return ("root", "split")
    return ("root", third, "transform", "target_transform", "download")


def _made(name: str) -> type[Pictures]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        arguments = {**dict(zip(_positional(name), args)), **kwargs}
        kind = KINDS[name]
        if name == "FakeData":
            size = arguments.get("image_size", (3, 224, 224))
            kind = kind._replace(
                train=arguments.get("size", 1000),
                height=size[1],
                width=size[2],
                classes=arguments.get("num_classes", 10),
            )
        Pictures.__init__(self, name, kind, arguments)

    return type(name, (Pictures,), {"__init__": init, "__module__": __name__, **_FILES.get(name, {})})


def _listed(*names: str) -> list[list[str]]:
    return [[name, ""] for name in names]


_FILES: dict[str, dict[str, Any]] = {
    "CIFAR10": {
        "base_folder": "cifar-10-batches-py",
        "filename": "cifar-10-python.tar.gz",
        "train_list": _listed(*(f"data_batch_{number}" for number in range(1, 6))),
        "test_list": _listed("test_batch"),
        "meta": {"filename": "batches.meta", "key": "label_names", "md5": ""},
    },
    "CIFAR100": {
        "base_folder": "cifar-100-python",
        "filename": "cifar-100-python.tar.gz",
        "train_list": _listed("train"),
        "test_list": _listed("test"),
        "meta": {"filename": "meta", "key": "fine_label_names", "md5": ""},
    },
}
"""What the real ones say of their files, for subclasses that read these themselves."""


for _name in KINDS:
    globals()[_name] = _made(_name)


def default_loader(path: str) -> Any:
    """A picture of a file, in colours."""
    return pil().open(path).convert("RGB")


pil_loader = default_loader


class DatasetFolder(VisionDataset):
    """Files in folders that are named for their classes."""

    def __init__(
        self,
        root: Any,
        loader: Any = default_loader,
        extensions: Any = IMG_EXTENSIONS,
        transform: Any = None,
        target_transform: Any = None,
        is_valid_file: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(root, None, transform, target_transform)
        self.loader = loader
        root = os.fspath(root)
        if not os.path.isdir(root):
            run().used(
                "ImageFolder " + os.path.basename(root.rstrip(os.sep)), "64 made-up pictures in 2 classes"
            )
            folder_of_classes(run(), root)
        self.classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        self.class_to_idx = {name: index for index, name in enumerate(self.classes)}
        if is_made(root):
            self.class_to_idx = Classes(self.class_to_idx)
        self.samples = [
            (os.path.join(above, name), index)
            for class_name, index in self.class_to_idx.items()
            for above, _, names in sorted(os.walk(os.path.join(root, class_name)))
            for name in sorted(names)
            if (
                is_valid_file(os.path.join(above, name))
                if is_valid_file
                else name.lower().endswith(tuple(extensions or ()))
            )
        ]
        self.imgs = self.samples
        self.targets = [label for _, label in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        path, target = self.samples[index]
        shown = self.loader(path)
        if self.transform is not None:
            shown = self.transform(shown)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return shown, target


class ImageFolder(DatasetFolder):
    """Pictures in folders that are named for their classes."""

    def __init__(
        self,
        root: Any,
        transform: Any = None,
        target_transform: Any = None,
        loader: Any = default_loader,
        is_valid_file: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(root, loader, IMG_EXTENSIONS, transform, target_transform, is_valid_file)


class CocoCaptions(VisionDataset):
    """Pictures with five sentences each."""

    def __init__(
        self, root: Any, annFile: Any, transform: Any = None, target_transform: Any = None, **kwargs: Any
    ):
        super().__init__(root, None, transform, target_transform)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        shown = image(media.pixels(run(), "coco" + str(index), 256, 256))
        target: Any = media.text(run(), "coco" + str(index), 5).split("\n")[:5]
        if self.transform is not None:
            shown = self.transform(shown)
        return shown, target if self.target_transform is None else self.target_transform(target)


__getattr__ = others(__name__)
