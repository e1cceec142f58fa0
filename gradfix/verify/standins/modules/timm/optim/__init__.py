"""timm.optim: optimizers by their names."""

from ....inert import others
from . import optim_factory
from .optim_factory import create_optimizer, create_optimizer_v2, optimizer_kwargs

__all__ = ["create_optimizer", "create_optimizer_v2", "optim_factory", "optimizer_kwargs"]
__getattr__ = others(__name__)
