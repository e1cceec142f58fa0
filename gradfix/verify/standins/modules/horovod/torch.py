"""horovod for torch among one process: averages over one are the values, an optimizer is itself."""

from __future__ import annotations

from typing import Any

from ...context import run
from ...inert import others

Average, Sum, Adasum, Min, Max = "Average", "Sum", "Adasum", "Min", "Max"


class Compression:
    """How gradients would be sent."""

    none = fp16 = None


def init(*args: Any, **kwargs: Any) -> None:
    """Begin."""
    run().used("horovod", "a world of one process")


def size() -> int:
    """One."""
    return 1


def rank() -> int:
    """The first."""
    return 0


local_size = cross_size = size
local_rank = cross_rank = rank


def is_initialized() -> bool:
    """It is."""
    return True


def shutdown() -> None:
    """There is nobody to leave."""


def DistributedOptimizer(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
    """The optimizer itself: the average of one gradient is that gradient."""
    optimizer.synchronize = shutdown
    return optimizer


def broadcast_parameters(*args: Any, **kwargs: Any) -> None:
    """They are here."""


broadcast_optimizer_state = broadcast_parameters


def allreduce(value: Any, *args: Any, **kwargs: Any) -> Any:
    """The value of all, which is that of one."""
    return value.clone()


allgather = broadcast = allreduce


def same(value: Any, *args: Any, **kwargs: Any) -> Any:
    """The value itself, which is left as it is."""
    return value


allreduce_ = broadcast_ = broadcast_object = same
__getattr__ = others(__name__)
