"""timm: layers, vision transformers, losses, and what trains them."""

from ...inert import others
from . import data, layers, loss, models, optim, scheduler, utils
from .models import create_model, is_model, list_models

__version__ = "0.4.12"
__all__ = [
    "create_model",
    "data",
    "is_model",
    "layers",
    "list_models",
    "loss",
    "models",
    "optim",
    "scheduler",
    "utils",
]
__getattr__ = others(__name__)
