"""Layer-wise adaptive rate control around an optimizer (You et al. 2017, arXiv:1708.03888, section 3)."""

from __future__ import annotations

from typing import Any

import torch


class LARC:
    """Scales each gradient by the ratio of the norms of its weights and of itself, then steps.

    Args:
        trust_coefficient: What the ratio is multiplied by.
        clip: Whether the rate of the optimizer is the largest there is.
        eps: Added to the norm of the gradient.
    """

    def __init__(
        self, optimizer: Any, trust_coefficient: float = 0.02, clip: bool = True, eps: float = 1e-8
    ) -> None:
        self.optim = optimizer
        self.trust_coefficient = trust_coefficient
        self.clip = clip
        self.eps = eps

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optim"], name)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Weight decay and the ratio go into the gradients; the optimizer does the rest."""
        decays = [group.get("weight_decay", 0) for group in self.optim.param_groups]
        with torch.no_grad():
            for group, decay in zip(self.optim.param_groups, decays):
                group["weight_decay"] = 0
                for weight in group["params"]:
                    if weight.grad is not None:
                        self._scale(weight, group["lr"], decay)
        found = self.optim.step(*args, **kwargs)
        for group, decay in zip(self.optim.param_groups, decays):
            group["weight_decay"] = decay
        return found

    def _scale(self, weight: torch.Tensor, rate: float, decay: float) -> None:
        assert weight.grad is not None
        sizes = weight.norm(), weight.grad.norm()
        ratio = self.trust_coefficient * sizes[0] / (sizes[1] + sizes[0] * decay + self.eps)
        if self.clip:
            ratio = (ratio / rate).clamp(max=1) if rate else torch.ones_like(ratio)
        # Where either is nothing there is no ratio; chosen without asking for a number.
        known = (sizes[0] != 0) & (sizes[1] != 0)
        scaled = (weight.grad + decay * weight) * ratio
        weight.grad.copy_(torch.where(known, scaled, weight.grad))
