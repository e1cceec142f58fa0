"""ema_pytorch: a copy of a network whose weights follow those that are trained."""

from __future__ import annotations

import copy
from typing import Any

import torch


class EMA(torch.nn.Module):
    """The network beside its copy, which no gradient reaches."""

    def __init__(
        self,
        model: Any,
        ema_model: Any = None,
        beta: float = 0.9999,
        update_after_step: int = 100,
        update_every: int = 10,
        inv_gamma: float = 1.0,
        power: float = 2 / 3,
        min_value: float = 0.0,
        include_online_model: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self._online = [model]
        if include_online_model:
            self.online_model = model
        self.ema_model = copy.deepcopy(model) if ema_model is None else ema_model
        self.ema_model.requires_grad_(False)
        self.beta, self.inv_gamma, self.power, self.min_value = beta, inv_gamma, power, min_value
        self.update_after_step, self.update_every = update_after_step, update_every
        self.initted: torch.Tensor
        self.step: torch.Tensor
        self.register_buffer("initted", torch.tensor(False))
        self.register_buffer("step", torch.tensor(0))

    @property
    def model(self) -> Any:
        """The network that is trained."""
        return self._online[0]

    def eval(self) -> Any:
        """The copy is evaluated."""
        self.ema_model.eval()
        return self

    def get_current_decay(self) -> float:
        """How much of the copy stays."""
        epoch = max(int(self.step) - self.update_after_step - 1, 0)
        value = 1 - (1 + epoch / self.inv_gamma) ** -self.power
        return min(max(value, self.min_value), self.beta) if epoch else 0.0

    @torch.no_grad()
    def copy_params_from_model_to_ema(self) -> None:
        """Begin with the weights that there are."""
        copied: Any = self.ema_model
        copied.load_state_dict(self.model.state_dict())

    @torch.no_grad()
    def update(self) -> None:
        """Follow, each so many steps."""
        step = int(self.step)
        self.step += 1
        if step % self.update_every:
            return
        if step <= self.update_after_step or not bool(self.initted):
            self.copy_params_from_model_to_ema()
            self.initted.fill_(step > self.update_after_step)
            return
        decay = self.get_current_decay()
        pairs = zip(self.ema_model.parameters(), self.model.parameters())
        for mine, trained in pairs:
            mine.lerp_(trained.detach().to(mine.dtype), 1 - decay)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the copy answers."""
        return self.ema_model(*args, **kwargs)
