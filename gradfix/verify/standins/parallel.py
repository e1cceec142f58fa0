"""Training that is spread over several devices: the part of the first process, with the network whole.

What a sharded network computes is what the whole one computes. Which device holds which part, and what
is sent between them, is not run and therefore not checked; the record says so.
"""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any

import torch

from . import context, processes

DEVICES = 8
"""Accelerators of the machine, for a script that gives up on one with too few."""
WHOLE = "the whole network in one process; which device holds what, and what they send, is not checked"


class Mesh:
    """A mesh of devices, as its first process sees it."""

    def __init__(self, device_type: str, shape: Any, names: Any = None) -> None:
        self.device_type = device_type
        self.shape = tuple(shape)
        self.mesh_dim_names = tuple(names) if names else None
        self.ndim = len(self.shape)
        self.mesh = torch.arange(math.prod(self.shape)).reshape(self.shape)

    def __repr__(self) -> str:
        return f"Mesh({self.device_type!r}, {self.shape}, {self.mesh_dim_names})"

    def __getitem__(self, names: Any) -> Mesh:
        """The part along some of the dimensions."""
        chosen = (names,) if isinstance(names, str) else tuple(names)
        known = self.mesh_dim_names or ()
        return Mesh(self.device_type, [self.shape[known.index(name)] for name in chosen], chosen)

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def size(self, mesh_dim: Any = None) -> int:
        """How many devices there are, along one dimension if that is given."""
        if isinstance(mesh_dim, str):
            return self[mesh_dim].size()
        return math.prod(self.shape) if mesh_dim is None else int(self.shape[mesh_dim])

    def get_rank(self) -> int:
        """The first."""
        return 0

    def get_local_rank(self, mesh_dim: Any = None) -> int:
        """The first along every dimension."""
        return 0

    def get_coordinate(self) -> list[int]:
        """The first along every dimension."""
        return [0] * self.ndim

    def get_group(self, mesh_dim: Any = None) -> None:
        """Collective operations of the stand-in need none."""

    def get_all_groups(self) -> list[None]:
        """Collective operations of the stand-in need none."""
        return [None] * self.ndim


class Sharded(processes.Parallel):
    """``FullyShardedDataParallel``: its gradients are the network's own."""

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """The norm over all of the network, which is here."""
        return torch.nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)


def whole(module: Any, *args: Any, **kwargs: Any) -> Any:
    """A network that would have been cut into parts."""
    context.run().used("a network in parts", WHOLE)
    return module


def install(run: context.Run) -> None:
    """Meshes of devices that are not there; ``installed`` changes what is imported later."""
    name = "torch.distributed.device_mesh"
    if name not in sys.modules:
        return
    real = sys.modules[name].init_device_mesh

    def make(device_type: str, mesh_shape: Any, *, mesh_dim_names: Any = None, **kwargs: Any) -> Mesh:
        run.used("a mesh of devices", "its first process, and nothing of the others")
        processes.alone(run)
        return Mesh(device_type, mesh_shape, mesh_dim_names)

    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("init_device_mesh") is real:
            context.replace(module, "init_device_mesh", make)


def change_tensor_parallel(module: Any) -> None:
    """``torch.distributed.tensor.parallel``."""
    context.replace(module, "parallelize_module", whole)
    if hasattr(module, "loss_parallel"):
        context.replace(module, "loss_parallel", lambda: contextlib.nullcontext())


def change_fully_sharded(module: Any) -> None:
    """``torch.distributed.fsdp``."""
    module.FullyShardedDataParallel = Sharded
    if hasattr(module, "fully_shard"):
        context.replace(module, "fully_shard", whole)
