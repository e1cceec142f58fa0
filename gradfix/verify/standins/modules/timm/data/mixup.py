"""timm.data.mixup: pictures and classes mixed in a batch."""

from __future__ import annotations

from typing import Any

import torch


class Mixup:
    """Mixes each picture of a batch with another, and their classes."""

    def __init__(
        self,
        mixup_alpha: float = 1.0,
        cutmix_alpha: float = 0.0,
        *args: Any,
        label_smoothing: float = 0.1,
        num_classes: int = 1000,
        **kwargs: Any,
    ) -> None:
        self.mixup_alpha = mixup_alpha or cutmix_alpha or 1.0
        self.label_smoothing = label_smoothing
        self.num_classes = num_classes
        self.mixup_enabled = True

    def __call__(self, x: torch.Tensor, target: torch.Tensor) -> Any:
        share = float(torch.distributions.Beta(self.mixup_alpha, self.mixup_alpha).sample())
        off = self.label_smoothing / self.num_classes
        soft = torch.full((len(target), self.num_classes), off, device=x.device)
        soft.scatter_(1, target.long().view(-1, 1), 1 - self.label_smoothing + off)
        return x * share + x.flip(0) * (1 - share), soft * share + soft.flip(0) * (1 - share)


class FastCollateMixup(Mixup):
    """The same while samples are put together."""

    def __call__(self, batch: Any, _: Any = None) -> Any:
        return super().__call__(*torch.utils.data.default_collate(batch))
