"""Runs with perturbed rounding: how much a gradient varies between them cannot be told from zero.

Two measures are taken. In each run (Monte Carlo arithmetic, Parker 1997) every gradient that flows from one
node of a graph to the next is moved by as little as its type can tell, up or down at random: a parameter's
gradient that changes by its own size is nothing but rounding, however deep its parameter lies. And a gradient
that is a sum (of a bias over the batch, of what a size was broadcast to) is held against its terms: what is
left of them where they cancel each other, a bias before a normalization or a shift before softmax, is at most
their sizes, added up, times the precision.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch

NODES = 20_000
"""Nodes of one graph that are hooked, at most."""
LEFT = 16.0
"""How many times the precision of its terms may be left of a sum that is zero. Measured for biases before
batch and instance normalization, those of keys in attention, and shifts before softmax: 0.1 to 0.9; of the
other biases and scales of the same networks the gradients were 300,000 times as large as that, and more."""


class Rounding:
    """Moves what flows through graphs, and adds up what gradients are made of.

    Args:
        seed: Of the signs.
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.terms: dict[int, float] = {}
        """By the identity of a leaf: the largest sum of the sizes of the terms of an element of its gradient
        in the call that was made last, times the precision of its type and :data:`LEFT`."""

    @contextlib.contextmanager
    def within(self, roots: Iterable[torch.Tensor]) -> Iterator[None]:
        """Around a backward call that differentiates ``roots``."""
        self.terms = {}
        handles = [node.register_hook(self._hook(node)) for node in _nodes(roots)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, node: Any) -> Any:
        leaves = [getattr(one, "variable", None) for one, _ in node.next_functions]

        def moved(given: tuple[Any, ...], arrived: tuple[Any, ...]) -> tuple[Any, ...]:
            terms = [one.detach() for one in arrived if _has_numbers(one)]
            for leaf in leaves:
                if leaf is not None and terms:
                    size = LEFT * max(float(_sizes(one, leaf.shape).max()) for one in terms)
                    self.terms[id(leaf)] = self.terms.get(id(leaf), 0.0) + size
            return tuple(self._moved(one, terms) if _has_numbers(one) else one for one in given)

        return moved

    def _moved(self, gradient: torch.Tensor, terms: list[torch.Tensor]) -> torch.Tensor:
        """A gradient of which each element is moved by as little as its type can tell, or the type of its
        terms can where it is their sum."""
        signs = torch.randint(0, 2, gradient.shape, generator=self._generator) * 2.0 - 1.0
        signs = signs.to(gradient.device, gradient.dtype)
        least = gradient.detach().abs() * (torch.finfo(gradient.dtype).eps / 2)
        for one in terms:
            if one.numel() > gradient.numel():
                least = torch.maximum(least, _sizes(one, gradient.shape).to(least.dtype))
        return gradient + least * signs


def _nodes(roots: Iterable[torch.Tensor]) -> list[Any]:
    """The nodes of the graphs, but for those that accumulate into leaves."""
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    found: dict[Any, None] = {}
    while waiting and len(found) < NODES:
        node = waiting.pop()
        if node not in found and not hasattr(node, "variable"):
            found[node] = None
            waiting.extend(one for one, _ in node.next_functions if one is not None)
    return list(found)


def _has_numbers(gradient: Any) -> bool:
    dense = isinstance(gradient, torch.Tensor) and gradient.layout == torch.strided
    return dense and gradient.is_floating_point() and gradient.numel() > 0


def _sizes(arrived: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """What rounding may leave of the sums, in a ``shape``, of a gradient that has arrived at a node: their
    terms without signs, times the precision of their type. Zeros where they are no such sums.
    """
    sizes = arrived.abs().double() * torch.finfo(arrived.dtype).eps
    # A vector goes along the last dimension, or that of the channels.
    for along in {arrived.dim() - 1, 1} if len(shape) == 1 else ():
        if 0 <= along < arrived.dim() and arrived.shape[along] == shape[0]:
            others = [at for at in range(arrived.dim()) if at != along]
            return sizes.sum(others) if others else sizes
    wide = len(shape) <= arrived.dim()
    if wide and all(one in (1, other) for one, other in zip(shape[::-1], arrived.shape[::-1])):
        return sizes.sum_to_size(shape)
    return torch.zeros(shape, dtype=torch.float64, device=arrived.device)
