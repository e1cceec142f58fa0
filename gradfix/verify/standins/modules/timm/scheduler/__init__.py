"""timm.scheduler: rates that go down as a cosine, whatever was asked for."""

from __future__ import annotations

import math
from typing import Any

from ....inert import others

__getattr__ = others(__name__)


class Scheduler:
    """A schedule that is told how far the training is."""

    def __init__(self, optimizer: Any, t_initial: int = 100, *args: Any, **kwargs: Any) -> None:
        self.optimizer, self.t_initial = optimizer, max(1, t_initial)
        self.first = [group["lr"] for group in optimizer.param_groups]

    def step(self, epoch: Any, metric: Any = None) -> None:
        """The rates of an epoch."""
        share = min(1.0, float(epoch) / self.t_initial)
        for group, rate in zip(self.optimizer.param_groups, self.first):
            group["lr"] = rate * (1 + math.cos(math.pi * share)) / 2

    def step_update(self, num_updates: int, metric: Any = None) -> None:
        """Nothing changes within an epoch."""

    def state_dict(self) -> dict[str, Any]:
        """What is kept."""
        return {"first": self.first}

    def load_state_dict(self, state: Any) -> None:
        """What was kept."""


CosineLRScheduler = StepLRScheduler = MultiStepLRScheduler = PlateauLRScheduler = PolyLRScheduler = Scheduler


def create_scheduler(args: Any, optimizer: Any, *more: Any, **kwargs: Any) -> Any:
    """A schedule for a script's epochs, and how many these are."""
    return Scheduler(optimizer, args.epochs), args.epochs
