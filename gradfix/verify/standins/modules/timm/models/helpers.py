"""timm.models.helpers: networks with settings."""

from __future__ import annotations

from typing import Any

from ....inert import others

__getattr__ = others(__name__)


def build_model_with_cfg(kind: Any, variant: str, pretrained: bool, *args: Any, **kwargs: Any) -> Any:
    """A network of a class, with the weights that it is made with."""
    ours = ("default_cfg", "pretrained_cfg", "pretrained_filter_fn", "pretrained_strict", "feature_cfg")
    return kind(*args[1:], **{name: value for name, value in kwargs.items() if name not in ours})


def load_pretrained(model: Any, *args: Any, **kwargs: Any) -> None:
    """A network keeps its own weights."""


load_checkpoint = load_pretrained
