"""Networks with the layers, names and shapes of the real ones and the weights that they are made with.

Those of older versions are here from the start; the module of any other is read when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from ....inert import others
from . import inception as _inception
from . import resnet as _resnet
from . import vgg as _vgg
from ._api import Weights
from .densenet import *  # noqa: F403
from .inception import *  # noqa: F403
from .mobilenetv2 import *  # noqa: F403
from .resnet import *  # noqa: F403
from .vgg import *  # noqa: F403

inception = _inception
resnet = _resnet
vgg = _vgg

LATER = {
    "alexnet": "AlexNet alexnet",
    "convnext": "ConvNeXt convnext_base convnext_large convnext_small convnext_tiny",
    "efficientnet": "EfficientNet efficientnet_v2_l efficientnet_v2_m efficientnet_v2_s "
    + " ".join(f"efficientnet_b{number}" for number in range(8)),
    "googlenet": "GoogLeNet GoogLeNetOutputs googlenet",
    "mnasnet": "MNASNet mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3",
    "mobilenetv3": "MobileNetV3 mobilenet_v3_large mobilenet_v3_small",
    "regnet": "RegNet "
    + " ".join(
        f"regnet_{kind}_{size}"
        for kind in "xy"
        for size in ("400mf", "800mf", "1_6gf", "3_2gf", "8gf", "16gf", "32gf")
    ),
    "shufflenetv2": "ShuffleNetV2 shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 "
    "shufflenet_v2_x2_0",
    "squeezenet": "SqueezeNet squeezenet1_0 squeezenet1_1",
    "swin_transformer": "SwinTransformer swin_b swin_s swin_t",
    "vision_transformer": "VisionTransformer vit_b_16 vit_b_32 vit_h_14 vit_l_16 vit_l_32",
}
"""By module: what it has."""


def _later(module: str, name: str) -> Any:
    """A function that is in the module, which is read when it is called.

    Scripts look for networks among the functions of this package by their names.
    """

    def make(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module("." + module, __name__), name)(*args, **kwargs)

    make.__name__ = make.__qualname__ = name
    return make


for _module, _names in LATER.items():
    for _name in _names.split():
        if _name.islower():
            globals()[_name] = _later(_module, _name)


_CLASSES = {name: module for module, names in LATER.items() for name in names.split() if not name.islower()}
_others = others(__name__)


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(importlib.import_module("." + _CLASSES[name], __name__), name)
    return Weights(name) if name.endswith("_Weights") else _others(name)


def get_model_builder(name: str) -> Any:
    """The function that makes the network of this name."""
    name = name.lower()
    for part in ("", ".segmentation", ".detection", ".video"):
        held = vars(importlib.import_module(__name__ + part))
        if callable(held.get(name)):
            return held[name]
    raise ValueError("Unknown model " + name)


def get_model(name: str, **config: Any) -> Any:
    """The network of this name."""
    return get_model_builder(name)(**config)


def get_weight(name: str) -> Weights:
    """Trained weights by their whole name (``ResNet50_Weights.DEFAULT``), which are not here."""
    return Weights(name)


def get_model_weights(name: Any) -> Weights:
    """The weights that there are of a network, by its name or its function."""
    return Weights(getattr(name, "__name__", str(name)) + "_Weights")
