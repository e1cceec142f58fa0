"""Attacks with the gradients of the script's own network and loss.

As with the real ones, the gradients come by ``backward``, and so does one for each parameter.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ...inert import others
from .utils import longest, normalized


class Attack:
    """What all attacks have."""

    def __init__(
        self, predict: Any, loss_fn: Any = None, clip_min: float = 0.0, clip_max: float = 1.0
    ) -> None:
        self.predict, self.loss_fn = predict, loss_fn or torch.nn.CrossEntropyLoss(reduction="sum")
        self.clip_min, self.clip_max = clip_min, clip_max
        self.targeted = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.perturb(*args, **kwargs)

    def perturb(self, x: torch.Tensor, y: Any = None) -> torch.Tensor:
        """Other data for which the network shall be wrong."""
        raise NotImplementedError

    def target(self, x: torch.Tensor, y: Any) -> Any:
        """What the loss is asked about: the network's own answers, if nothing is said."""
        if y is not None:
            return y.detach().clone()
        if self.targeted:
            raise AssertionError("a targeted attack needs targets")
        with torch.no_grad():
            return self.predict(x).argmax(1)

    def gradient(self, x: torch.Tensor, delta: torch.Tensor, y: Any) -> torch.Tensor:
        """The gradient at ``x + delta``, by which the loss grows, or shrinks for targets."""
        delta = delta.detach().requires_grad_()
        loss = self.loss_fn(self.predict(x + delta), y)
        (-loss if self.targeted else loss).backward()
        assert delta.grad is not None
        return delta.grad.detach()

    def clipped(self, x: torch.Tensor) -> torch.Tensor:
        """Values as the data may have."""
        return x.clamp(self.clip_min, self.clip_max)


class PGDAttack(Attack):
    """Several steps, after each of which the change is made small enough again."""

    decay_factor = 0.0
    """How much of the steps before stays in the direction."""

    def __init__(
        self,
        predict: Any,
        loss_fn: Any = None,
        eps: float = 0.3,
        nb_iter: int = 40,
        eps_iter: float = 0.01,
        rand_init: bool = True,
        clip_min: float = 0.0,
        clip_max: float = 1.0,
        ord: float = math.inf,
        l1_sparsity: Any = None,
        targeted: bool = False,
    ) -> None:
        super().__init__(predict, loss_fn, clip_min, clip_max)
        self.eps, self.nb_iter, self.eps_iter, self.rand_init = eps, nb_iter, eps_iter, rand_init
        self.ord, self.targeted = ord, targeted

    def perturb(self, x: torch.Tensor, y: Any = None) -> torch.Tensor:
        x, y = x.detach().clone(), self.target(x, y)
        delta, before = torch.zeros_like(x), torch.zeros_like(x)
        if self.rand_init:
            delta = self.within(x, delta.uniform_(-self.eps, self.eps))
        for _ in range(self.nb_iter):
            step = self.gradient(x, delta, y)
            if self.decay_factor:
                step = before = self.decay_factor * before + normalized(step, 1)
            step = step.sign() if self.ord == math.inf else normalized(step, self.ord)
            delta = self.within(x, delta + self.eps_iter * step)
        return self.clipped(x + delta)

    def within(self, x: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
        """A change of data that is no larger than it may be."""
        if self.ord == math.inf:
            delta = delta.clamp(-self.eps, self.eps)
        else:
            delta = delta * (self.eps / longest(delta, self.ord)).clamp(max=1.0)
        return self.clipped(x + delta) - x


def by_norm(name: str, order: float, base: Any = PGDAttack, **fixed: Any) -> Any:
    """The class of an attack whose changes are measured by a norm."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        base.__init__(self, *args, **{**kwargs, **fixed, "ord": order})

    return type(name, (base,), {"__init__": init})


LinfPGDAttack = by_norm("LinfPGDAttack", math.inf)
L2PGDAttack = by_norm("L2PGDAttack", 2)
L1PGDAttack = by_norm("L1PGDAttack", 1)


class MomentumIterativeAttack(PGDAttack):
    """Steps whose direction keeps a part of those before."""

    def __init__(
        self,
        predict: Any,
        loss_fn: Any = None,
        eps: float = 0.3,
        nb_iter: int = 40,
        decay_factor: float = 1.0,
        eps_iter: float = 0.01,
        clip_min: float = 0.0,
        clip_max: float = 1.0,
        targeted: bool = False,
        ord: float = math.inf,
    ) -> None:
        super().__init__(
            predict, loss_fn, eps, nb_iter, eps_iter, False, clip_min, clip_max, ord, None, targeted
        )
        self.decay_factor = decay_factor


class BasicIterativeAttack(PGDAttack):
    """Several steps from the data themselves."""

    def __init__(
        self,
        predict: Any,
        loss_fn: Any = None,
        eps: float = 0.1,
        nb_iter: int = 10,
        eps_iter: float = 0.05,
        clip_min: float = 0.0,
        clip_max: float = 1.0,
        targeted: bool = False,
        ord: float = math.inf,
    ) -> None:
        super().__init__(
            predict, loss_fn, eps, nb_iter, eps_iter, False, clip_min, clip_max, ord, None, targeted
        )


LinfBasicIterativeAttack = by_norm("LinfBasicIterativeAttack", math.inf, BasicIterativeAttack)
L2BasicIterativeAttack = by_norm("L2BasicIterativeAttack", 2, BasicIterativeAttack)
LinfMomentumIterativeAttack = by_norm("LinfMomentumIterativeAttack", math.inf, MomentumIterativeAttack)
L2MomentumIterativeAttack = by_norm("L2MomentumIterativeAttack", 2, MomentumIterativeAttack)


class GradientSignAttack(Attack):
    """One step along the sign of the gradient."""

    def __init__(
        self,
        predict: Any,
        loss_fn: Any = None,
        eps: float = 0.3,
        clip_min: float = 0.0,
        clip_max: float = 1.0,
        targeted: bool = False,
    ) -> None:
        super().__init__(predict, loss_fn, clip_min, clip_max)
        self.eps, self.targeted = eps, targeted

    def perturb(self, x: torch.Tensor, y: Any = None) -> torch.Tensor:
        x, y = x.detach().clone(), self.target(x, y)
        return self.clipped(x + self.eps * self.direction(self.gradient(x, torch.zeros_like(x), y)))

    def direction(self, gradient: torch.Tensor) -> torch.Tensor:
        """Where the step goes."""
        return gradient.sign()


class GradientAttack(GradientSignAttack):
    """One step along the gradient."""

    def direction(self, gradient: torch.Tensor) -> torch.Tensor:
        return normalized(gradient, 2)


FGSM, FGM = GradientSignAttack, GradientAttack

__getattr__ = others(__name__)
