"""torchdiffeq: a few steps of Euler's method with the script's own function.

``odeint_adjoint`` keeps the times, the first state and the parameters for its gradients, as the real one
does, and computes the way again to differentiate it.
"""

from __future__ import annotations

from typing import Any

import torch

STEPS = 4
"""Steps from the first time to the last, at least one between each two."""


def ahead(func: Any, state: Any, start: torch.Tensor, end: torch.Tensor, steps: int) -> Any:
    """The state at another time."""
    width = (end - start) / steps
    for number in range(steps):
        change = func(start + number * width, state)
        if isinstance(state, tuple):
            state = tuple(one + width * other for one, other in zip(state, change))
        else:
            state = state + width * change
    return state


def solved(func: Any, state: Any, times: torch.Tensor) -> Any:
    """The states at all times, put together."""
    found = [state]
    steps = max(1, STEPS // max(1, len(times) - 1))
    for number in range(1, len(times)):
        found.append(ahead(func, found[-1], times[number - 1], times[number], steps))
    if isinstance(state, tuple):
        return tuple(torch.stack(parts) for parts in zip(*found))
    return torch.stack(found)


def odeint(func: Any, y0: Any, t: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """The states of ``y0`` at the times ``t``; what says how exact they are to be changes nothing."""
    if kwargs.get("event_fn") is not None:
        raise NotImplementedError("events are not looked for")
    return solved(func, tuple(y0) if isinstance(y0, list) else y0, t)


class Adjoint(torch.autograd.Function):
    """The states at all times, whose way is computed a second time for its gradients."""

    @staticmethod
    def forward(ctx: Any, func: Any, whole: bool, count: int, times: torch.Tensor, *values: Any) -> Any:
        """``values`` are the parts of the state, ``count`` of them, and then the parameters."""
        ctx.func, ctx.whole, ctx.count = func, whole, count
        ctx.save_for_backward(times, *values)
        found = solved(func, values[0] if whole else tuple(values[:count]), times)
        return (found,) if whole else found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *given: torch.Tensor) -> Any:
        """The gradients of the parts of the state and of the parameters."""
        times, *values = ctx.saved_tensors
        parts = [one.detach().requires_grad_() for one in values[: ctx.count]]
        weights = values[ctx.count :]
        with torch.enable_grad():
            found = solved(ctx.func, parts[0] if ctx.whole else tuple(parts), times)
            found = (found,) if ctx.whole else found
            used = [pair for pair in zip(found, given) if pair[0].requires_grad and pair[1] is not None]
            gradients = torch.autograd.grad(
                [one for one, _ in used], [*parts, *weights], [other for _, other in used], allow_unused=True
            )
        return None, None, None, None, *gradients


def odeint_adjoint(
    func: Any, y0: Any, t: torch.Tensor, *args: Any, adjoint_params: Any = None, **kwargs: Any
) -> Any:
    """The same, with gradients that are computed backwards in time."""
    if kwargs.get("event_fn") is not None:
        raise NotImplementedError("events are not looked for")
    if adjoint_params is None:
        adjoint_params = func.parameters() if isinstance(func, torch.nn.Module) else ()
    weights = [one for one in adjoint_params if one.requires_grad]
    whole = isinstance(y0, torch.Tensor)
    parts = [y0] if whole else list(y0)
    found: Any = Adjoint.apply(func, whole, len(parts), t, *parts, *weights)  # type: ignore[no-untyped-call]
    return found[0] if whole else found
