"""apex: the same computation in full precision."""

from . import amp, optimizers, parallel

__all__ = ["amp", "optimizers", "parallel"]
