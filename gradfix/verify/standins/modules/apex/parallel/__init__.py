"""A world of one process."""

from typing import Any

from torch.nn import SyncBatchNorm

from ....processes import Parallel as DistributedDataParallel

__all__ = ["DistributedDataParallel", "SyncBatchNorm", "convert_syncbn_model", "create_syncbn_process_group"]


def convert_syncbn_model(module: Any, *args: Any, **kwargs: Any) -> Any:
    """The network as it is."""
    return module


def create_syncbn_process_group(group_size: int) -> None:
    """The group of all, which is one."""
