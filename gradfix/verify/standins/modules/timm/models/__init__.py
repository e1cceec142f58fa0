"""timm.models: networks by their names."""

from __future__ import annotations

import fnmatch
import functools
from typing import Any

from ....context import run
from ....inert import library, others
from .. import layers
from . import vision_transformer
from .registry import known, register_model
from .usual import usual
from .vision_transformer import VisionTransformer

__all__ = ["create_model", "is_model", "layers", "list_models", "register_model", "vision_transformer"]
__getattr__ = others(__name__)
OURS = "checkpoint_path scriptable exportable no_jit bn_tf".split()
OTHERS = "drop_rate drop_path_rate drop_block_rate".split()
USUAL = "densenet121 mobilenetv2_100 resnet18 resnet34 resnet50 resnet101 resnet152 vgg16".split()
RENAMED = {"mobilenetv2_100": "mobilenet_v2"}
WIDTHS = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12), "large": (1024, 16)}


def create_model(model_name: str, pretrained: bool = False, **kwargs: Any) -> Any:
    """A network with the weights that it is made with: one that the script registered, or a usual one."""
    kwargs = {name: value for name, value in kwargs.items() if value is not None and name not in OURS}
    if model_name not in known:
        # The command line gives another name than a default that only its letters' case keeps from being one.
        meant = [name for name in known if name.lower() == model_name.lower()]
        if len(meant) == 1:
            run().used(f"network {model_name}", meant[0])
            model_name = meant[0]
    if model_name in known:
        return known[model_name](pretrained=pretrained, **kwargs)
    for name in OTHERS:
        kwargs.pop(name, None)
    parts = model_name.split("_")
    if parts[0] in ("vit", "deit") and parts[1] in WIDTHS:
        kwargs.pop("global_pool", None)
        width, heads = WIDTHS[parts[1]]
        kwargs.setdefault("img_size", int(parts[-1]) if parts[-1].isdigit() else 224)
        patch = int(parts[2].replace("patch", "")) if parts[2].startswith("patch") else 16
        return VisionTransformer(patch_size=patch, embed_dim=width, num_heads=heads, **kwargs)
    name = RENAMED.get(model_name.split(".")[0], model_name.split(".")[0])
    made = getattr(library("torchvision.models"), name, None)
    if made is None:
        raise RuntimeError(f"Unknown model ({model_name})")
    return usual(made(), kwargs)


def list_models(filter: Any = "", *args: Any, **kwargs: Any) -> list[str]:
    """The names of the networks that are known."""
    sizes = [f"{kind}_{width}_patch16_224" for kind in ("deit", "vit") for width in WIDTHS]
    every = sorted({*known, *USUAL, *sizes})
    wanted = [filter] if isinstance(filter, str) else filter
    return [name for name in every if any(not one or fnmatch.fnmatch(name, one) for one in wanted)]


def is_model(model_name: str) -> bool:
    """Whether a network is known."""
    return model_name.split(".")[0] in list_models()


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
