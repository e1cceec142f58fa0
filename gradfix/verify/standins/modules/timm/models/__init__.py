"""timm.models: networks by their names."""

from __future__ import annotations

import functools
from typing import Any

from ....inert import library, others
from .. import layers
from . import vision_transformer
from .registry import known, register_model
from .vision_transformer import VisionTransformer

__all__ = ["create_model", "layers", "register_model", "vision_transformer"]
__getattr__ = others(__name__)
OURS = "checkpoint_path scriptable exportable no_jit".split()
OTHERS = "drop_rate drop_path_rate drop_block_rate global_pool".split()
WIDTHS = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12), "large": (1024, 16)}


def create_model(model_name: str, pretrained: bool = False, **kwargs: Any) -> Any:
    """A network with the weights that it is made with: one that the script registered, or a usual one."""
    kwargs = {name: value for name, value in kwargs.items() if value is not None and name not in OURS}
    if model_name in known:
        return known[model_name](pretrained=pretrained, **kwargs)
    for name in OTHERS:
        kwargs.pop(name, None)
    parts = model_name.split("_")
    if parts[0] in ("vit", "deit") and parts[1] in WIDTHS:
        width, heads = WIDTHS[parts[1]]
        kwargs.setdefault("img_size", int(parts[-1]) if parts[-1].isdigit() else 224)
        patch = int(parts[2].replace("patch", "")) if parts[2].startswith("patch") else 16
        return VisionTransformer(patch_size=patch, embed_dim=width, num_heads=heads, **kwargs)
    made = getattr(library("torchvision.models"), model_name.split(".")[0], None)
    if made is None:
        raise RuntimeError(f"Unknown model ({model_name})")
    classes = {"num_classes": kwargs["num_classes"]} if "num_classes" in kwargs else {}
    return made(**classes)


convert_splitbn_model = functools.partial(lambda model, *args: model)


def safe_model_name(name: str, *args: Any) -> str:
    """A name for files."""
    return name.replace("/", "_")


def model_parameters(model: Any, *args: Any) -> Any:
    """All weights."""
    return model.parameters()


def load_checkpoint(model: Any, *args: Any, **kwargs: Any) -> None:
    """A network keeps its own weights."""


resume_checkpoint = load_checkpoint
