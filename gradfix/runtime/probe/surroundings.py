"""The surroundings of a run: its folders, variables and seeds, and what Python refuses to it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import random
import socket
import sys
import tempfile
import types
from collections.abc import Callable
from typing import Any

import torch

from ..sandbox import readable
from . import overlay
from .recorder import Recorder

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PATHS = {
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.chmod": 1,
    "os.chown": 1,
    "os.utime": 1,
}
NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")


def guard(folder: str) -> None:
    """Refuse, at Python's level, writes outside ``folder`` and the network.

    The sandbox refuses them anyway, to C code and to other programs too, but can give no reason.
    """
    inside = (os.path.join(os.path.realpath(folder), ""), "/dev/")
    families = (int(socket.AF_INET), int(socket.AF_INET6))

    def allowed(path: Any) -> bool:
        if isinstance(path, int) or path is None:
            return True
        real = os.path.realpath(os.fsdecode(path))
        return (real + os.sep).startswith(inside)

    def refuse(path: Any) -> None:
        raise PermissionError(13, "writing outside the temporary folder is refused during verification", path)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & WRITES and not allowed(path):
                refuse(path)
        elif event in PATHS:
            # What a link points at is not written to.
            paths = args[1:2] if event == "os.symlink" else args[: PATHS[event]]
            for path in paths:
                if not allowed(path):
                    refuse(path)
        elif event in NETWORK or (event == "socket.__new__" and args[1] in families):
            raise OSError("the network is off during verification")

    real_save = torch.save

    @functools.wraps(real_save)
    def save(value: object, f: Any, *args: Any, **kwargs: Any) -> None:
        # It opens its file in C, where no audit hook sees it.
        if isinstance(f, (str, os.PathLike)) and not allowed(f):
            refuse(f)
        real_save(value, f, *args, **kwargs)

    torch.save = save  # type: ignore[assignment]
    sys.addaudithook(hook)


def seed_all(seed: int) -> None:
    """Seed every generator, and shift the seeds that the script sets itself.

    Without the shift a script that calls ``manual_seed`` would do the same under every seed. With
    seed 0 it runs as it is written.
    """

    def shifted(real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def set_seed(value: Any = None, *args: Any, **kwargs: Any) -> Any:
            return real(value + seed if isinstance(value, int) else value, *args, **kwargs)

        return set_seed

    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    owners: list[tuple[Any, str]] = [(random, "seed"), (torch, "manual_seed"), (torch.random, "manual_seed")]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
        owners.append((sys.modules["numpy"].random, "seed"))
    if seed:
        for owner, name in owners:
            setattr(owner, name, shifted(getattr(owner, name)))


def plain_processes(shared: bool) -> None:
    """Make processes that the script starts use pipes: there are no sockets in the sandbox.

    Tensors are sent by value, where torch would pass descriptors of shared memory through a socket;
    processes are forked, where newer Pythons have a server for that; and where there is no shared
    memory, not even for locks, data loaders work in the process itself.
    """
    import multiprocessing.context
    from multiprocessing.reduction import ForkingPickler

    reducers: dict[Any, Any] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    for kind, reducer in list(reducers.items()):
        if getattr(reducer, "__module__", "") == "torch.multiprocessing.reductions":
            del reducers[kind]
    contexts: Any = multiprocessing.context
    contexts._default_context._default_context = contexts._concrete_contexts["fork"]
    if shared:
        return
    real = torch.utils.data.DataLoader.__init__
    signature = inspect.signature(real)
    alone = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False, "timeout": 0}
    alone["multiprocessing_context"] = None

    @functools.wraps(real)
    def init(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        given.arguments.update({name: value for name, value in alone.items() if name in given.arguments})
        real(*given.args, **given.kwargs)

    torch.utils.data.DataLoader.__init__ = init  # type: ignore[method-assign]


def group_of_one() -> None:
    """Let a process group that has one member do without sockets, which torch's backends open even then."""
    import torch.distributed

    if not torch.distributed.is_available():
        return
    real = torch.distributed.init_process_group
    signature = inspect.signature(real)

    @functools.wraps(real)
    def init(*args: Any, **kwargs: Any) -> Any:
        if signature.bind(*args, **kwargs).arguments.get("world_size") == 1:
            with contextlib.suppress(ImportError):
                # It registers the backend: collectives in Python, between the threads of a process.
                import torch.testing._internal.distributed.multi_threaded_pg

                store = torch.distributed.HashStore()  # type: ignore[attr-defined]
                return real("threaded", store=store, rank=0, world_size=1)
        return real(*args, **kwargs)

    torch.distributed.init_process_group = init
    torch.distributed.distributed_c10d.init_process_group = init


def surround(recorder: Recorder, job: dict[str, Any], scratch: str) -> None:
    """Set up the environment of a run: its folders, variables, seeds and processes."""
    for variable in (
        "HOME",
        "TMPDIR",
        "MPLCONFIGDIR",
        "NUMBA_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
    ):
        os.environ[variable] = scratch
    os.environ.update(job["command"]["env"])
    tempfile.tempdir = None
    guard(scratch)
    recorder.overlay = overlay.Overlay(
        scratch, readable.folders_down(job["root"], job["path"]), readable.SECRET
    )
    recorder.overlay.install()
    led_into(recorder.overlay)
    # Where there is a tensorflow, tensorboard writes its logs in C, past the layer; this tells it not to.
    sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
    plain_processes(job["shared"])
    group_of_one()
    seed_all(job["seed"])


def led_into(layer: Any) -> None:
    """Let ``torch.save``, which opens its file in C, write into the layer as everything else does."""
    real = torch.save

    @functools.wraps(real)
    def save(value: object, f: Any, *args: Any, **kwargs: Any) -> None:
        path = overlay.text_of(f)
        real(value, f if path is None else layer.writing(path), *args, **kwargs)

    torch.save = save  # type: ignore[assignment]
