"""Mixed precision that is not mixed: a loss is scaled by one."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

_amp_state = types.SimpleNamespace(loss_scalers=[types.SimpleNamespace(_loss_scale=1.0)], verbosity=1)
"""What scripts look into for the scale of the loss; it stays one, whatever they make it."""


def initialize(models: Any, optimizers: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Networks and optimizers as they are."""
    return models if optimizers is None else (models, optimizers)


@contextlib.contextmanager
def scale_loss(loss: Any, optimizers: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
    """The loss as it is."""
    yield loss


def master_params(optimizer: Any) -> Iterator[Any]:
    """The parameters of an optimizer."""
    for group in optimizer.param_groups:
        yield from group["params"]


def state_dict() -> dict[str, Any]:
    """There is no state."""
    return {}


def load_state_dict(state: Any) -> None:
    """There is no state."""


class _Handle:
    """What older versions gave: by it losses are scaled, and optimizers made to do so."""

    def is_active(self) -> bool:
        """Nothing is scaled."""
        return False

    def scale_loss(self, loss: Any, optimizer: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The loss as it is."""
        return scale_loss(loss, optimizer)

    def wrap_optimizer(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer, which gives losses as they are."""
        optimizer.scale_loss = lambda loss: scale_loss(loss, optimizer)
        return optimizer


def init(*args: Any, **kwargs: Any) -> _Handle:
    """The handle of older versions."""
    return _Handle()


def _same(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function as it is: there is one precision."""
    return function


half_function = float_function = promote_function = _same
