"""advertorch: attacks that follow the sign or the direction of a gradient, computed as the real ones do."""

from ...inert import others
from . import attacks, context, utils

__all__ = ["attacks", "context", "utils"]
__getattr__ = others(__name__)
