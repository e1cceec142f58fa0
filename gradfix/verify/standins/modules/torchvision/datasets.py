"""Data sets: those of which the shapes are known, and folders of pictures."""

from __future__ import annotations

import os
from typing import Any

import torch

from ... import media
from ...context import run
from ...inert import library, others
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

    def _changed(self, shown: Any, target: Any) -> tuple[Any, Any]:
        """A picture and what belongs to it, after the transformations."""
        if self.transforms is not None:
            shown, target = self.transforms(shown, target)
        if self.transform is not None:
            shown = self.transform(shown)
        return shown, target if self.target_transform is None else self.target_transform(target)


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


SAMPLES, HEIGHT, WIDTH = 64, 375, 500
"""Of the pictures of Pascal VOC."""


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
        return self._changed(shown, media.text(run(), "coco" + str(index), 5).split("\n")[:5])


class CocoDetection(VisionDataset):
    """Pictures and their annotations: a dictionary for each object."""

    def __init__(
        self,
        root: Any,
        annFile: Any,
        transform: Any = None,
        target_transform: Any = None,
        transforms: Any = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.coco = library("pycocotools.coco").COCO(annFile)
        self.ids = sorted(self.coco.imgs)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Any:
        number = self.ids[index]
        (known,) = self.coco.loadImgs(number)
        path = os.path.join(self.root, known["file_name"])
        if os.path.isfile(path):
            shown = default_loader(path)
        else:
            shown = image(media.pixels(run(), known["file_name"], known["height"], known["width"]))
        return self._changed(shown, self.coco.loadAnns(self.coco.getAnnIds(number)))


class VOCSegmentation(VisionDataset):
    """Pictures and the class of each of their pixels, as pictures; 255 is told of none."""

    classes = 21

    def __init__(
        self,
        root: Any = None,
        year: str = "2012",
        image_set: str = "train",
        download: bool = False,
        transform: Any = None,
        target_transform: Any = None,
        transforms: Any = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.kind = f"{type(self).__name__} {image_set}"
        what = f"{SAMPLES} made-up pictures, RGB {HEIGHT} x {WIDTH}"
        run().used("torchvision.datasets." + type(self).__name__, what)

    def __len__(self) -> int:
        return SAMPLES

    def target(self, name: str) -> Any:
        """What belongs to the picture of this name."""
        values = media.pixels(run(), name + " classes", HEIGHT, WIDTH, 1).long() * self.classes // 256
        return image(values.to(torch.uint8))

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < SAMPLES:
            raise IndexError(index)
        name = f"{self.kind} {index}"
        return self._changed(image(media.pixels(run(), name, HEIGHT, WIDTH)), self.target(name))


class VOCDetection(VOCSegmentation):
    """Pictures and what is told of the objects in them, all of it texts."""

    NAMES = (
        "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person "
        "pottedplant sheep sofa train tvmonitor"
    ).split()

    def target(self, name: str) -> Any:
        """What belongs to the picture of this name."""
        generator = run().generator(name)
        things = []
        for _ in range(2):
            left, top = (int(torch.randint(side // 2, (), generator=generator)) for side in (WIDTH, HEIGHT))
            box = {"xmin": left + 1, "ymin": top + 1, "xmax": left + WIDTH // 4, "ymax": top + HEIGHT // 4}
            kind = self.NAMES[int(torch.randint(len(self.NAMES), (), generator=generator))]
            told = {"pose": "Unspecified", "truncated": "0", "difficult": "0", "occluded": "0"}
            things.append({"name": kind, **told, "bndbox": {side: str(at) for side, at in box.items()}})
        size = {"width": str(WIDTH), "height": str(HEIGHT), "depth": "3"}
        held = {"folder": "VOC2012", "filename": name.replace(" ", "_") + ".jpg", "size": size}
        return {"annotation": {**held, "segmented": "0", "object": things}}


__getattr__ = others(__name__)
