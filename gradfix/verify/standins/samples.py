"""Samples of public data sets: the shapes and lengths of the real ones, with made-up pictures and labels."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from . import content, context, media


class Kind(NamedTuple):
    """What is known of a data set of pictures."""

    mode: str
    """``L`` or ``RGB``, as PIL calls them."""
    height: int
    width: int
    classes: int
    train: int
    """Samples for training."""
    test: int


KINDS = {
    "MNIST": Kind("L", 28, 28, 10, 60000, 10000),
    "FashionMNIST": Kind("L", 28, 28, 10, 60000, 10000),
    "KMNIST": Kind("L", 28, 28, 10, 60000, 10000),
    "QMNIST": Kind("L", 28, 28, 10, 60000, 10000),
    "EMNIST": Kind("L", 28, 28, 47, 112800, 18800),
    "USPS": Kind("L", 16, 16, 10, 7291, 2007),
    "CIFAR10": Kind("RGB", 32, 32, 10, 50000, 10000),
    "CIFAR100": Kind("RGB", 32, 32, 100, 50000, 10000),
    "SVHN": Kind("RGB", 32, 32, 10, 73257, 26032),
    "STL10": Kind("RGB", 96, 96, 10, 5000, 8000),
    "CelebA": Kind("RGB", 218, 178, 40, 162770, 19962),
    "LSUN": Kind("RGB", 256, 256, 10, 3000, 300),
    "LSUNClass": Kind("RGB", 256, 256, 1, 3000, 300),
    "ImageNet": Kind("RGB", 375, 500, 1000, 1281, 500),
    "Omniglot": Kind("L", 105, 105, 964, 19280, 13180),
    "Flowers102": Kind("RGB", 300, 300, 102, 1020, 6149),
    "Caltech101": Kind("RGB", 200, 300, 101, 8677, 8677),
    "Food101": Kind("RGB", 300, 300, 101, 75750, 25250),
    "OxfordIIITPet": Kind("RGB", 300, 300, 37, 3680, 3669),
    "StanfordCars": Kind("RGB", 300, 300, 196, 8144, 8041),
    "GTSRB": Kind("RGB", 48, 48, 43, 26640, 12630),
    "FakeData": Kind("RGB", 224, 224, 10, 1000, 1000),
    "LFWPeople": Kind("RGB", 250, 250, 5749, 9525, 3708),
    "Places365": Kind("RGB", 256, 256, 365, 1803, 365),
    "SEMEION": Kind("L", 16, 16, 10, 1593, 1593),
}


SHARE = 100
"""How many times as many samples the real data sets have, where sizes are reduced."""
SAMPLES = 10
"""Samples of each class that a data set keeps at least, or it stays as long as it is."""


def length_of(run: context.Run, count: int, classes: int) -> int:
    """How many samples a data set has that is made up for a run."""
    if not run.small or count // share() < SAMPLES * classes:
        return count
    run.shortened = run.fewer = True
    return count // share()


def share() -> int:
    """How many times as many there are in this run: a tenth of that if it failed with so few, and no more
    than here if it failed with these as well."""
    return {None: SHARE, True: SHARE // 10, ALL: 1}[content.book.planned("samples", "more")]


ALL = "all of them"


FEWER = re.compile(
    r"size|shape|population|out of (?:range|bounds)|num_samples|larger sample|not enough|too few|at least",
    re.I,
)
"""Messages that there may be for too few samples."""


MISSED = re.compile(r"larger (?:sample )?than population|num_samples=0\b")
"""Messages where more samples are drawn than there are, or none are left."""


def advise(run: context.Run, error: BaseException) -> str | None:
    """The plan with more samples in data sets that were shortened, where nothing else helps."""
    if not (run.small and run.shortened and FEWER.search(str(error))):
        return None
    had = content.book.planned("samples", "more")
    if had is None:
        return content.planned_with("samples", "more", True)
    return content.planned_with("samples", "more", ALL) if run.fewer and had is True else None


def advise_if_missed(run: context.Run, error: BaseException) -> str | None:
    """The same where samples of a known data set are missed."""
    return advise(run, error) if run.fewer and MISSED.search(str(error)) else None


def is_training(arguments: dict[str, Any]) -> bool:
    """Whether the arguments of a data set ask for its training part."""
    for name in ("train", "split", "image_set", "classes", "background", "what"):
        value = arguments.get(name)
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            return not value.startswith(("test", "val"))
    return True


def labels(run: context.Run, name: str, count: int, classes: int) -> torch.Tensor:
    """Labels that all occur."""
    return torch.randint(0, classes, (count,), generator=run.generator("labels", name, count))


def pictures(run: context.Run, name: str, count: int, kind: Kind) -> torch.Tensor:
    """Bytes, ``count`` x height x width (x 3): a few pictures, each with its own noise."""
    generator = run.generator("pictures", name, count)
    channels = 1 if kind.mode == "L" else 3
    few = torch.stack(
        [media.pixels(run, name + str(i), kind.height, kind.width, channels) for i in range(32)]
    )
    chosen = few[torch.randint(0, 32, (count,), generator=generator)]
    if count * kind.height * kind.width * channels < 1 << 26:
        chosen = (chosen // 2) + torch.randint(0, 127, chosen.shape, generator=generator, dtype=torch.uint8)
    return chosen.squeeze(-1) if channels == 1 else chosen


def pil() -> Any:
    """``PIL.Image``, or its stand-in under the same name."""
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        package = importlib.import_module("_gradfix_standins.modules.PIL")
        module = importlib.import_module("_gradfix_standins.modules.PIL.Image")
        context.run().used("PIL", "a stand-in with the same shapes")
        sys.modules.setdefault("PIL", package)
        sys.modules.setdefault("PIL.Image", module)
        return module


def shown_in(path: Any, mode: str | None = None) -> Any:
    """The picture of a file, in the mode, else in its own, without a palette: as readers of arrays do."""
    picture = pil().open(path)
    return picture.convert(mode or ("RGB" if picture.mode in ("P", "CMYK") else picture.mode))


def plotted(path: Any, *args: Any, **kwargs: Any) -> Any:
    """The picture of a file as matplotlib reads it: numbers up to 1 of a PNG, bytes of any other."""
    numpy = importlib.import_module("numpy")
    values = numpy.array(shown_in(path))
    png = str(getattr(path, "name", path)).lower().endswith(".png")
    return (values / 255).astype(numpy.float32) if png else values


def image(pixels: torch.Tensor) -> Any:
    """Bytes, height x width (x 3), as a picture of PIL."""
    mode = "L" if pixels.dim() == 2 or pixels.shape[-1] == 1 else "RGB"
    data = media.raw(pixels)
    return pil().frombytes(mode, (pixels.shape[1], pixels.shape[0]), data)


_made: set[str] = set()


def is_made(root: str) -> bool:
    """Whether :func:`folder_of_classes` has made a folder."""
    return os.path.abspath(root) in _made


def folder_of_classes(run: context.Run, root: str, classes: int = 2, files: int = 64) -> None:
    """Make a folder of ``classes`` folders with pictures, of which only a few differ."""
    classes = content.book.planned("pictures", "classes") or classes
    content.book.classes = classes
    _made.add(os.path.abspath(root))
    contents = [media.picture_file(run, "class" + str(i)) for i in range(4)]
    for index in range(classes):
        folder = os.path.join(root, "class_" + str(index))
        os.makedirs(folder, exist_ok=True)
        for number in range(files // classes):
            with open(os.path.join(folder, f"{number:04d}.png"), "wb") as file:
                file.write(contents[number % 4])


class Classes(dict[str, int]):
    """The classes of a folder that was made up, by name: each new name that is asked for is that of one."""

    def __missing__(self, name: str) -> int:
        made = [one for one in self if one.startswith("class_")]
        if not isinstance(name, str) or not made:
            raise KeyError(name)
        self[name] = self.pop(made[0])
        return self[name]


class Own(property):
    """What a data set has made; an ordinary attribute of a user's subclass that makes all of its own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, one: Any, kind: type | None = None) -> Any:
        if one is None or "kind" in vars(one):
            return super().__get__(one, kind)
        if self.name not in vars(one):
            raise AttributeError(self.name)
        return vars(one)[self.name]

    def __set__(self, one: Any, value: Any) -> None:
        if "kind" in vars(one):
            super().__set__(one, value)
        else:
            vars(one)[self.name] = value


class Pictures(torch.utils.data.Dataset[Any]):
    """A data set of one of the known kinds, made where it is asked for."""

    def download(self, *args: Any, **kwargs: Any) -> None:
        """What is asked for is made up."""

    def _check_integrity(self) -> bool:
        return True

    _check_exists = _check_integrity

    def __init__(self, name: str, kind: Kind, arguments: dict[str, Any]) -> None:
        run = context.run()
        self.name = name
        parts = arguments.get("classes")
        if name == "LSUN" and isinstance(parts, (list, tuple)) and parts:
            # Of these its scenes are, and their labels are numbers of these.
            kind = kind._replace(classes=len(parts))
        self.kind = kind
        self.train = is_training(arguments)
        self.root = arguments.get("root")
        self.transform: Callable[[Any], Any] | None = arguments.get("transform")
        self.target_transform: Callable[[Any], Any] | None = arguments.get("target_transform")
        self.transforms = arguments.get("transforms")
        self.whole = kind.train if self.train else kind.test
        """Samples that the real one has: who knows that asks for these, too."""
        self.count = length_of(run, self.whole, kind.classes)
        self.classes = [str(i) for i in range(kind.classes)]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        letters = 659 if name == "Omniglot" and not self.train else kind.classes
        self._labels = labels(run, name, self.count, letters)
        self._pictures: torch.Tensor | None = None
        self.target_type = arguments.get("target_type", "attr")
        if name == "Omniglot":
            # Code that puts both of its parts together asks for these; the second one has other letters.
            self._characters = [f"alphabet/character{number:04d}" for number in range(letters)]
        self._few: dict[int, torch.Tensor] = {}
        shorter = "" if self.count == self.whole else f" in place of {self.whole}"
        run.used(
            "torchvision.datasets." + name,
            f"{self.count}{shorter} made-up pictures, {kind.mode} {kind.height} x {kind.width}",
        )

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def _data(self) -> Any:
        if self._pictures is None:
            self._pictures = pictures(context.run(), self.name, self.count, self.kind)
            if self.name in ("SVHN", "STL10"):
                self._pictures = self._pictures.permute(0, 3, 1, 2).contiguous()
        if self.kind.mode == "L":
            return self._pictures
        return self._pictures.numpy()

    def _keep_data(self, value: Any) -> None:
        self._pictures = torch.as_tensor(value)
        self.whole = self.count = len(self._pictures)

    def _targets(self) -> Any:
        return self._labels if self.kind.mode == "L" else self._labels.tolist()

    def _keep_targets(self, value: Any) -> None:
        self._labels = torch.as_tensor(value)

    data = Own(_data, _keep_data)
    """All pictures, as the real data set holds them."""
    targets = Own(_targets, _keep_targets)
    """All labels, as the real data set holds them."""
    train_data, test_data = Own(_data, _keep_data), Own(_data, _keep_data)
    labels = Own(_targets, _keep_targets)
    train_labels, test_labels = Own(_targets, _keep_targets), Own(_targets, _keep_targets)

    def picture(self, index: int) -> Any:
        """One picture, of PIL."""
        run = context.run()
        if self._pictures is not None:
            one = self._pictures[index]
            return image(one.permute(1, 2, 0) if one.dim() == 3 and one.shape[0] == 3 else one)
        few = index % 64
        if few not in self._few:
            channels = 1 if self.kind.mode == "L" else 3
            self._few[few] = media.pixels(
                run, self.name + str(few), self.kind.height, self.kind.width, channels
            )
        return image(self._few[few])

    def target(self, index: int) -> Any:
        """One label, of the real data set's type."""
        if self.name == "CelebA":
            bits = torch.randint(0, 2, (40,), generator=context.run().generator("attributes", index))
            return bits if "attr" in str(self.target_type) else int(bits.sum())
        return int(self._labels[index])

    def __getitem__(self, index: Any) -> Any:
        if index < 0:
            index += self.count
        if not 0 <= index < self.whole:
            raise IndexError(index)
        index = index % self.count
        shown, target = self.picture(int(index)), self.target(int(index))
        if self.transforms is not None:
            return self.transforms(shown, target)
        if self.transform is not None:
            shown = self.transform(shown)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return shown, target
