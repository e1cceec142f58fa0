"""Mixed precision that is not mixed: a loss is scaled by one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


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
