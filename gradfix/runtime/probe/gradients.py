"""The gradients that parameters hold, and which backward calls have given them."""

from __future__ import annotations

from typing import Any

import torch

from . import BY_HAND, storages


class ParameterSlot:
    """A parameter of an optimizer, and the backward calls whose gradients it holds."""

    def __init__(self, tensor: torch.Tensor) -> None:
        # Holding the tensors keeps their identities from being given to others.
        self.tensor = tensor
        self.gradient = tensor.grad
        self.was_zero = False
        self.feeds: list[int] = [] if tensor.grad is None else [BY_HAND]
        self.terms = 0.0
        """In a run that rounds otherwise: what rounding may leave of the sum, if that is zero."""

    def refresh(self) -> list[int]:
        """Notice what happened to the gradient since the last look: cleared, zeroed, assigned.

        Returns:
            The calls whose gradients it held and holds no more.
        """
        gradient, before = self.tensor.grad, self.feeds
        if gradient is None:
            self.feeds = []
        elif gradient is not self.gradient:
            self.feeds = [BY_HAND] if nonzero(gradient) else []
            self.was_zero = False
        elif self.feeds and not self.was_zero and not nonzero(gradient):
            self.feeds = []
        if not self.feeds:
            self.terms = 0.0
        self.gradient = gradient
        return [call for call in before if call != BY_HAND] if self.feeds is not before else []

    def fed(self, by: int) -> None:
        """Note that the backward call ``by`` has accumulated into the gradient."""
        self.gradient = self.tensor.grad
        # A backward may rightly contribute zeros; only zeros that appear later mean "cleared".
        self.was_zero = self.gradient is not None and not nonzero(self.gradient)
        self.feeds.append(by)


def nonzero(tensor: torch.Tensor) -> bool:
    """Whether any element differs from zero (or may, if there are no values)."""
    if type(tensor).__name__ == "FakeTensor":
        return not storages.nothing_but_zeros(tensor)
    flat = tensor.detach()
    if flat.is_sparse:
        flat = flat.coalesce().values()
    # Of most tensors the first row says it.
    return bool((flat[:1] if flat.dim() else flat).any() or flat.any())


def state(tensor: torch.Tensor) -> tuple[torch.Tensor | None, int]:
    """What tells whether a backward call has accumulated into a tensor's gradient."""
    gradient = tensor.grad
    return gradient, -1 if gradient is None else gradient._version


def restore(tensor: torch.Tensor, gradient: torch.Tensor | None, held: torch.Tensor | None) -> None:
    """Give a tensor the gradient back that it had, and that what it held."""
    tensor.grad = gradient
    if gradient is not None and held is not None:
        gradient.copy_(held)


def same(one: tuple[Any, int], other: tuple[Any, int]) -> bool:
    """Whether two looks at a gradient saw the same tensor at the same version."""
    return one[0] is other[0] and one[1] == other[1]
