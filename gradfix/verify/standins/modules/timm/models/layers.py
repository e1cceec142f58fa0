"""timm.models.layers, where the layers once were."""

from ..layers import *  # noqa: F403
from ..layers import __getattr__  # noqa: F401
