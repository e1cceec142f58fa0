"""timm.scheduler.cosine_lr."""

from . import CosineLRScheduler

__all__ = ["CosineLRScheduler"]
