"""A step after a call that takes none itself: it shows what an evaluation returns, and leaves behind.

Its gradients depend on the weights, on the gradients that have been left, and on all numbers that the call
has returned; and every step shows modes, buffers and random numbers.
"""

from __future__ import annotations

import numbers
import types
from collections.abc import Iterator
from typing import Any

import torch

from ..standins import context
from .given import Given

_trained: list[Any] = [(0, 0)]
"""How many steps and backward calls there had been after the last call."""
_optimizers: dict[tuple[int, ...], torch.optim.Optimizer] = {}


def afterwards(result: Any, *held: Any) -> None:
    """Take a step that depends on the ``result`` of a call, and on what is ``held`` by who has called."""
    run = context.run()
    now = (run.recorder.steps, run.recorder.backwards)
    _trained[:], had = [now], _trained[0]
    if now != had:
        return  # The call itself trains.
    nets = list(dict.fromkeys(net for one in held for net in _modules(one)))
    owned = list(dict.fromkeys(p for net in nets for p in net.parameters() if p.requires_grad))
    if not owned:
        run.stop("nothing that the step alone could train is in sight")
    if any(one.grad_fn is not None for kept in (result, *held) for one in _tensors(kept)):
        run.stop("the call hands on results with their graph, and callers may differentiate them")
    run.used("what follows the call", "a step of all weights, which depends on what was returned")
    key = tuple(map(id, owned))
    if key not in _optimizers:
        _optimizers[key] = torch.optim.SGD(owned, lr=0.01)
    with torch.no_grad():
        said = [one.double().mean() for one in _tensors(result) if one.numel()]
        factor = 1 + sum((at * one.cos() for at, one in enumerate(said, 2)), torch.zeros(()).double())
    loss = factor.float() * torch.stack([one.float().square().mean() for one in owned]).sum()
    torch.autograd.backward(loss)
    _optimizers[key].step()
    _optimizers[key].zero_grad()
    _trained[0] = (run.recorder.steps, run.recorder.backwards)


def _modules(held: Any, depth: int = 2) -> Iterator[torch.nn.Module]:
    """The networks in what somebody holds."""
    if isinstance(held, torch.nn.Module):
        yield held
    elif isinstance(held, (dict, list, tuple)):
        for one in held.values() if isinstance(held, dict) else held:
            yield from _modules(one, depth)
    elif depth and not isinstance(held, (type, types.FunctionType, Given)):
        yield from _modules(list(getattr(held, "__dict__", {}).values()), depth - 1)


def _tensors(held: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    """The tensors and numbers in what was returned, or what an object or a container holds."""
    if isinstance(held, torch.Tensor):
        yield held.detach() if held.grad_fn is None else held
    elif isinstance(held, numbers.Real) and not isinstance(held, bool):
        yield torch.tensor(float(held))
    elif type(held).__module__ == "numpy" and hasattr(held, "astype") and held.dtype.kind in "fiub":
        yield torch.as_tensor(held)
    elif depth and isinstance(held, (dict, list, tuple)):
        for one in held.values() if isinstance(held, dict) else held:
            yield from _tensors(one, depth - 1)
    elif depth and not isinstance(held, (type, types.ModuleType, torch.nn.Module, Given)):
        yield from _tensors(getattr(held, "__dict__", {}), depth - 1)
