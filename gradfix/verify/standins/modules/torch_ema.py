"""torch_ema: averages of weights beside those that are trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class ExponentialMovingAverage:
    """The averages of given parameters."""

    def __init__(self, parameters: Iterable[Any], decay: float, use_num_updates: bool = True) -> None:
        self.parameters = list(parameters)
        self.decay = decay
        self.num_updates = 0 if use_num_updates else None
        self.shadow_params = [one.detach().clone() for one in self.parameters]
        self.collected_params: list[torch.Tensor] | None = None

    def _given(self, parameters: Any) -> list[Any]:
        return self.parameters if parameters is None else list(parameters)

    @torch.no_grad()
    def update(self, parameters: Any = None) -> None:
        """Follow the parameters."""
        decay = self.decay
        if self.num_updates is not None:
            self.num_updates += 1
            decay = min(decay, (1 + self.num_updates) / (10 + self.num_updates))
        for mine, trained in zip(self.shadow_params, self._given(parameters)):
            mine.sub_((1 - decay) * (mine - trained))

    @torch.no_grad()
    def copy_to(self, parameters: Any = None) -> None:
        """Give parameters the averages."""
        for mine, trained in zip(self.shadow_params, self._given(parameters)):
            trained.data.copy_(mine.data)

    def store(self, parameters: Any = None) -> None:
        """Keep what the parameters are."""
        self.collected_params = [one.detach().clone() for one in self._given(parameters)]

    @torch.no_grad()
    def restore(self, parameters: Any = None) -> None:
        """Give parameters what was kept."""
        for kept, trained in zip(self.collected_params or [], self._given(parameters)):
            trained.data.copy_(kept)

    @contextmanager
    def average_parameters(self, parameters: Any = None) -> Iterator[None]:
        """The averages for a while."""
        self.store(parameters)
        self.copy_to(parameters)
        try:
            yield
        finally:
            self.restore(parameters)

    def to(self, *args: Any, **kwargs: Any) -> None:
        """Move the averages."""
        self.shadow_params = [one.to(*args, **kwargs) for one in self.shadow_params]

    def state_dict(self) -> dict[str, Any]:
        """All that there is to save."""
        return {"decay": self.decay, "num_updates": self.num_updates, "shadow_params": self.shadow_params}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """What was saved."""
        self.__dict__.update(state)
