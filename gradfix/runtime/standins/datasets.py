"""torchvision's and Hugging Face's data sets at their own classes: the real class, without its files.

A class of torchvision's that keeps all of its samples in memory gets made-up ones in the shapes, and in the
number, that the real files hold; everything else (``__getitem__``, transforms, splits) is the class's own.
A data set of Hugging Face's hub gets the columns that the script asks for. Classes that read a file for each
sample, such as ``ImageFolder``, read files that ``files.py`` has made.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

import torch

from . import context
from .schema import Schema, with_entry, with_listed
from .value import LABEL, SAMPLES


class Kind(NamedTuple):
    """A data set that is kept in memory."""

    shape: tuple[int, ...]
    """Of one sample, as the class keeps it: bytes."""
    counts: dict[str, int]
    """Samples by what selects them: the value of ``train`` or ``split``."""
    classes: int
    labels: str = "targets"
    """The attribute for the classes of the samples."""
    container: str = "array"
    """``tensor`` or ``array`` for the samples; the classes are a tensor, an array or a list."""
    label_container: str = "list"


MNIST = Kind((28, 28), {"True": 60_000, "False": 10_000}, 10, container="tensor", label_container="tensor")
CIFAR = Kind((32, 32, 3), {"True": 50_000, "False": 10_000}, 10)
KINDS = {
    "MNIST": MNIST,
    "FashionMNIST": MNIST,
    "KMNIST": MNIST,
    "EMNIST": MNIST._replace(classes=47, counts={"True": 112_800, "False": 18_800}),
    "CIFAR10": CIFAR,
    "CIFAR100": CIFAR._replace(classes=100),
    "SVHN": Kind(
        (3, 32, 32), {"train": 73_257, "test": 26_032, "extra": 531_131}, 10, "labels", "array", "array"
    ),
    "STL10": Kind(
        (3, 96, 96), {"train": 5_000, "test": 8_000, "unlabeled": 100_000}, 10, "labels", "array", "array"
    ),
    "USPS": Kind((16, 16), {"True": 7_291, "False": 2_007}, 10),
}
"""Shapes and numbers of samples: torchvision's documentation of each class."""
DIFFERENT = 256
"""Samples that differ from each other; they come again and again."""


def advise(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema with the data set whose files an error says are missing."""
    if "DataLoader worker" in str(error) and not run.schema.get("alone"):
        return {**run.schema, "alone": True}
    trace, found = error.__traceback__, None
    while trace is not None:
        frame = trace.tb_frame
        module = frame.f_globals.get("__name__", "")
        if module.startswith("torchvision.datasets"):
            for kind in type(frame.f_locals.get("self")).__mro__:
                found = kind.__name__ if kind.__name__ in KINDS and found is None else found
        if module == "datasets.load" and frame.f_code.co_name == "load_dataset":
            name = frame.f_locals.get("path")
            if isinstance(name, str) and name not in run.schema.get("hub", {}):
                return with_entry(run.schema, "hub", name, [])
        if module == "torch.hub" and frame.f_code.co_name == "load_state_dict_from_url":
            return None if run.schema.get("weights") else {**run.schema, "weights": True}
        trace = trace.tb_next
    if found is not None and found not in run.schema.get("datasets", []):
        return with_listed(run.schema, "datasets", found)
    return _column(run, error)


def _column(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The column that a data set of the hub was asked for and has not."""
    message = str(error)
    found = re.search(
        r"Column '?(\w+)'? (?:not in the dataset|doesn't exist)|^'(\w+)'$|Columns? \['(\w+)'", message
    )
    hub: dict[str, Any] = run.schema.get("hub", {})
    if not found or not hub:
        return None
    name, columns = list(hub.items())[-1]
    wanted = next(one for one in found.groups() if one)
    return with_entry(run.schema, "hub", name, [*columns, wanted]) if wanted not in columns else None


def install(run: context.StandinRun) -> None:
    """Let the classes that the schema names do without their files; smaller batches, if it says so."""
    if run.schema.get("datasets"):
        context.when_imported("torchvision.datasets", lambda module: _torchvision(run, module))
    if run.schema.get("hub"):
        context.when_imported("datasets", lambda module: _hub(run, module))
    _loaders(run)


# -- torchvision ---------------------------------------------------------------------------------


def _torchvision(run: context.StandinRun, module: Any) -> None:
    for name in run.schema["datasets"]:
        _without_files(run, getattr(module, name), name)


def _without_files(run: context.StandinRun, kind: Any, name: str) -> None:
    signature = inspect.signature(kind.__init__)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = _bound(signature, self, args, kwargs)
        base = next(one for one in kind.__mro__ if one.__name__ == "VisionDataset")
        transforms = {key: given.get(key) for key in ("transform", "target_transform")}
        base.__init__(self, given.get("root"), **transforms)
        # EMNIST has both: its ``split`` names a set of classes.
        chosen = str(given.get("split" if "split" in given and "train" not in given else "train", "True"))
        _keep_samples(run, self, name, chosen)
        self.train, self.split = given.get("train", True), given.get("split")

    kind.__init__ = init


def _bound(signature: inspect.Signature, *given: Any) -> dict[str, Any]:
    """The arguments of a constructor by name, those of ``**kwargs`` among them, with its defaults."""
    self, args, kwargs = given
    taken = signature.bind(self, *args, **kwargs)
    taken.apply_defaults()
    found = dict(taken.arguments)
    found.update(found.pop("kwargs", {}))
    return found


@context.quietly
def _keep_samples(run: context.StandinRun, data: Any, name: str, chosen: str) -> None:
    kind = KINDS[name]
    count = kind.counts.get(chosen) or next(iter(kind.counts.values()))
    count = min(count, run.schema.get("samples", count))
    drawn = context.generator(name, chosen)
    pixels = torch.randint(0, 256, (DIFFERENT, *kind.shape), generator=drawn).to(torch.uint8)
    labels = torch.randint(0, kind.classes, (DIFFERENT,), generator=drawn)
    times = -(-count // DIFFERENT)
    samples = pixels.repeat(times, *(1 for _ in kind.shape))[:count]
    classes = labels.repeat(times)[:count]
    data.data = samples if kind.container == "tensor" else samples.numpy()
    kept: Any = {"tensor": classes, "array": classes.numpy()}.get(kind.label_container)
    setattr(data, kind.labels, classes.tolist() if kept is None else kept)
    if not getattr(type(data), "classes", None):
        data.classes = [f"class_{number}" for number in range(kind.classes)]
        data.class_to_idx = {label: number for number, label in enumerate(data.classes)}
    run.used(f"the files of torchvision's {name}", f"{count} made-up samples of its shape")


# -- Hugging Face --------------------------------------------------------------------------------

SPLITS = ("train", "validation", "test")


def _hub(run: context.StandinRun, module: Any) -> None:
    real = module.load_dataset

    def load_dataset(path: Any, *args: Any, **kwargs: Any) -> Any:
        if path not in run.schema["hub"]:
            return real(path, *args, **kwargs)
        run.used(
            f"the files of Hugging Face's {path}", "made-up samples with the columns that were asked for"
        )
        split = kwargs.get("split")
        if split is not None:
            return _split(run, module, path, str(split))
        return module.DatasetDict({one: _split(run, module, path, one) for one in SPLITS})

    module.load_dataset = load_dataset


@context.quietly
def _split(run: context.StandinRun, module: Any, name: str, split: str) -> Any:
    from .files import WORDS

    held: dict[str, Any] = {}
    for column in run.schema["hub"][name]:
        drawn = context.generator(name, split, column)
        if LABEL.search(column):
            held[column] = torch.randint(0, 2, (SAMPLES,), generator=drawn).tolist()
        else:
            rows = torch.randint(0, len(WORDS), (SAMPLES, 12), generator=drawn).tolist()
            held[column] = [" ".join(WORDS[number] for number in row) for row in rows]
    return module.Dataset.from_dict(held or {"": [0] * SAMPLES})


# -- how much at a time --------------------------------------------------------------------------


ALONE = {
    "timeout": 0,
    "num_workers": 0,
    "prefetch_factor": None,
    "persistent_workers": False,
    "multiprocessing_context": None,
}


def _loaders(run: context.StandinRun) -> None:
    """Let data loaders work in the process itself, where errors say what was missing, and give smaller
    batches, if the schema says so."""
    real, most = torch.utils.data.DataLoader.__init__, run.schema.get("batch", 1 << 30)
    signature = inspect.signature(real)

    def init(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        wanted = given.arguments.get("batch_size")
        if isinstance(wanted, int) and wanted > most:
            run.used(f"batches of {wanted}", f"batches of {most}, to be done in time")
            given.arguments["batch_size"] = most
        if run.schema.get("alone"):
            run.used("processes of a data loader", "the script's own process")
            given.arguments.update({name: value for name, value in ALONE.items() if name in given.arguments})
        real(*given.args, **given.kwargs)

    torch.utils.data.DataLoader.__init__ = init  # type: ignore[method-assign]
