"""Mistakes to plant into a step, which the harness that it runs in has to refute (``verify/planting.py``)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

_calls: dict[int, int] = {}


def doubled(loss: Any) -> Any:
    """A loss, or a result, that counts twice."""
    if isinstance(loss, (tuple, list)):
        return type(loss)(doubled(one) for one in loss)
    if isinstance(loss, dict):
        return {name: doubled(one) for name, one in loss.items()}
    return loss if loss is None or isinstance(loss, (str, bool)) else 2 * loss


def moved(called: Any) -> Any:
    """A network whose weights move when it is called."""
    if isinstance(called, torch.nn.Module):
        with torch.no_grad():
            for parameter in called.parameters():
                parameter.mul_(0.9)
    return called


def cut(term: Any) -> Any:
    """A term that trains nobody."""
    return term.detach() if isinstance(term, torch.Tensor) else term


def every_other(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward that happens every other time only."""
    line = sys._getframe(1).f_lineno
    _calls[line] = _calls.get(line, 0) + 1
    return backward if _calls[line] % 2 else lambda *args, **kwargs: None


def stale(loss: Any) -> Any:
    """A loss that was computed with other weights than those which its gradients are used for."""
    waiting, known = [loss.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in known:
            continue
        known.add(node)
        if hasattr(node, "variable"):
            node.variable.data.mul_(0.9)
        waiting += [inner for inner, _ in node.next_functions]
    return loss
