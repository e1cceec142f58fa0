"""timm.data: what is done to pictures."""

from __future__ import annotations

from typing import Any

import torch

from ....inert import library, others
from .constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from .mixup import FastCollateMixup, Mixup

__all__ = [
    "IMAGENET_DEFAULT_MEAN",
    "IMAGENET_DEFAULT_STD",
    "Dataset",
    "FastCollateMixup",
    "ImageDataset",
    "Mixup",
    "create_dataset",
    "create_loader",
    "create_transform",
    "resolve_data_config",
]
__getattr__ = others(__name__)


def create_transform(input_size: Any, is_training: bool = False, *args: Any, **kwargs: Any) -> Any:
    """Pictures of a size, as tensors."""
    transforms = library("torchvision.transforms")
    side = input_size[-1] if isinstance(input_size, (tuple, list)) else input_size
    steps = [transforms.RandomResizedCrop(side)] if is_training else [transforms.Resize((side, side))]
    steps += [transforms.RandomHorizontalFlip()] if is_training else []
    given = [
        kwargs.get(name, value)
        for name, value in (("mean", IMAGENET_DEFAULT_MEAN), ("std", IMAGENET_DEFAULT_STD))
    ]
    return transforms.Compose(
        [*steps, transforms.ToTensor(), transforms.Normalize(*map(torch.tensor, given))]
    )


def resolve_data_config(args: Any = None, *others: Any, **kwargs: Any) -> dict[str, Any]:
    """Settings of pictures: of the size that is asked for, else of the usual one."""
    given = args if isinstance(args, dict) else vars(args) if args is not None else {}
    size = given.get("input_size")
    if size is None:
        side = given.get("img_size") or 224
        size = (given.get("in_chans") or given.get("chans") or 3, side, side)
    found = {"input_size": tuple(size), "interpolation": "bicubic", "crop_pct": 0.875}
    means = {
        "mean": given.get("mean") or IMAGENET_DEFAULT_MEAN,
        "std": given.get("std") or IMAGENET_DEFAULT_STD,
    }
    return {**found, **means}


def create_dataset(name: str, root: Any, split: str = "validation", **kwargs: Any) -> Any:
    """The data set of torchvision that a name speaks of, ImageNet for folders of pictures."""
    datasets = library("torchvision.datasets")
    wanted = name.rpartition("/")[2].lower()
    known = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "mnist": "MNIST", "fashion_mnist": "FashionMNIST"}
    if wanted in known:
        return getattr(datasets, known[wanted])(root, train="train" in split)
    return datasets.ImageNet(root, split="train" if "train" in split else "val")


def ImageDataset(root: Any, *args: Any, transform: Any = None, **kwargs: Any) -> Any:
    """Folders of pictures, one for each class."""
    return library("torchvision.datasets").ImageFolder(root, transform=transform)


Dataset = ImageDataset


def create_loader(
    dataset: Any,
    input_size: Any,
    batch_size: int,
    is_training: bool = False,
    use_prefetcher: bool = True,
    collate_fn: Any = None,
    **kwargs: Any,
) -> Any:
    """A loader of pictures of a size with their classes."""
    shown = {key: kwargs[key] for key in ("mean", "std") if kwargs.get(key) is not None}
    dataset.transform = create_transform(input_size, is_training, **shown)
    return torch.utils.data.DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=is_training,
        # What else puts samples together for the prefetcher works on bytes, which there are none of here.
        collate_fn=collate_fn if isinstance(collate_fn, Mixup) or not use_prefetcher else None,
        drop_last=is_training,
    )
