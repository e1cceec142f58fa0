"""Optimizers without their fused kernels."""

from torch.optim import SGD as FusedSGD
from torch.optim import Adam as FusedAdam

__all__ = ["FusedAdam", "FusedSGD"]
