"""timm.data.auto_augment: pictures that are changed at random."""

from __future__ import annotations

from typing import Any

from ....inert import library, others

__getattr__ = others(__name__)


def rand_augment_transform(config_str: str, hparams: Any = None, *args: Any) -> Any:
    """Pictures that may be turned round; values are made up anyway."""
    return library("torchvision.transforms").RandomHorizontalFlip()


def auto_augment_transform(config_str: str, hparams: Any = None) -> Any:
    """Like the other."""
    return rand_augment_transform(config_str, hparams)


def augment_and_mix_transform(config_str: str, hparams: Any = None) -> Any:
    """Like the other."""
    return rand_augment_transform(config_str, hparams)
