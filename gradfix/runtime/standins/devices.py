"""An accelerator that is not there is the CPU, and a distributed training is a world of one process.

``torch.cuda.is_available()`` keeps saying no, so a script that has another way takes it. Only a run that has
failed for want of an accelerator is repeated with what is sent there staying on the CPU, and with ``yes`` as
the answer to the script itself (never to torch, which would go on to use one).
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import context
from .schema import Schema

KINDS = ("cuda", "xpu", "hip", "npu", "mps")
ACCELERATOR = re.compile(
    r"not compiled with CUDA|no NVIDIA driver|No CUDA GPUs|no current CUDA|torch\.cuda\.\w+Tensor|"
    r"CUDA (?:error|driver|device|is required|not available)|deserialize object on a CUDA device|"
    r"Expected one of .* device type|[Ii]nvalid device (?:id|ordinal)|MPS (?:backend|device)|accelerator",
    re.I,
)
"""What torch says where an accelerator is used that is not there."""
ASKS = re.compile(r"cuda|gpu|is_available|device_count", re.I)
"""Statements of a script that give up on a machine without one."""
DISTRIBUTED = re.compile(
    r"environment variable \w+ expected|process group has not been initialized|NCCL|Gloo|rendezvous|"
    r"torch\.distributed|the network is off|^'(?:LOCAL_)?(?:RANK|WORLD_SIZE)'|^'MASTER_(?:ADDR|PORT)'",
    re.I,
)
ONE = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "NODE_RANK": "0"}
ONE.update(MASTER_ADDR="localhost", MASTER_PORT="29500")
"""What a launcher of one process sets (the environment of ``torchrun``)."""


def advise(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema with the CPU for an accelerator, or with a world of one, if the error asks for it."""
    message, trace = str(error), run.raised_in(error)
    line = context.statement(trace) if trace is not None else ""
    gives_up = isinstance(error, (AssertionError, SystemExit)) or re.match(r"\s*raise\b", line) is not None
    insists = gives_up and (ASKS.search(line) or ASKS.search(message))
    if ACCELERATOR.search(message) and not run.schema.get("accelerator"):
        return {**run.schema, "accelerator": "used"}
    if insists and run.schema.get("accelerator") != "insisted on":
        return {**run.schema, "accelerator": "insisted on"}
    if DISTRIBUTED.search(message) and not run.schema.get("world") and _through_processes(error, line):
        return {**run.schema, "world": True}
    return None


def _through_processes(error: BaseException, line: str) -> bool:
    """Whether an error came of what several processes do together."""
    trace = error.__traceback__
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        if name.startswith(("torch.distributed", "torch.multiprocessing", "torch.nn.parallel")):
            return True
        trace = trace.tb_next
    return re.search(r"\bdist|spawn|environ", line) is not None


def install(run: context.StandinRun) -> None:
    """Put the CPU in the place of an accelerator, and one process in that of many, if the schema says so."""
    if run.schema.get("accelerator"):
        asked = run.schema["accelerator"] == "insisted on"
        run.used("an accelerator", "the CPU" + (", and yes where the script asks for one" if asked else ""))
        _OnCPU(run).__enter__()  # type: ignore[no-untyped-call]
        _queries(run, asked)
        _constructors(run)
        _mixed_precision(run)
    if run.schema.get("world"):
        _world_of_one(run)


def _is_accelerator(device: Any) -> bool:
    if isinstance(device, torch.device):
        return device.type in KINDS
    if isinstance(device, str):
        return device.split(":")[0] in KINDS
    return type(device) is int


class _OnCPU(TorchFunctionMode):
    """Keeps on the CPU what functions and methods of torch would make on an accelerator, or send there."""

    def __init__(self, run: context.StandinRun) -> None:
        super().__init__()
        self.run = run

    def cpu(self, device: Any) -> Any:
        """The device to use in the place of ``device``."""
        return torch.device("cpu") if _is_accelerator(device) else device

    def moved(self, here: Any, there: Any) -> Any:
        """What is sent to an accelerator: another tensor than the one that was sent, as it would be there."""
        if getattr(here, "_gradfix_sent", False):
            return there
        there = there.clone() if there is here else there
        if not isinstance(there, torch.nn.Parameter):
            there._gradfix_sent = True
        return there

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.Tensor.cuda:
            return self.moved(args[0], args[0])
        sent = _is_accelerator(kwargs.get("device"))
        if kwargs.get("device") is not None:
            kwargs["device"] = self.cpu(kwargs["device"])
        if func is torch.Tensor.to and len(args) > 1:
            sent |= _is_accelerator(args[1])
            args = (args[0], self.cpu(args[1]), *args[2:])
        if func is torch.Tensor.to and sent:
            return self.moved(args[0], func(*args, **kwargs))
        if func is torch.Tensor.type and len(args) > 1 and isinstance(args[1], str):
            args = (args[0], args[1].replace("torch.cuda.", "torch."), *args[2:])
        return func(*args, **kwargs)


def _asked_by_user(run: context.StandinRun) -> bool:
    return run.owns(sys._getframe(2))


class _Event:
    """An event or a stream where there is nothing to wait for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> _Event:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds."""
        return 1.0

    def query(self) -> bool:
        """Whether all work is done."""
        return True

    def record(self, *args: Any) -> None:
        """Nothing is left to wait for."""

    wait = wait_stream = wait_event = synchronize = record


class _Properties:
    """What a device says of itself."""

    name, major, minor, total_memory, multi_processor_count = "CPU", 0, 0, 1 << 30, 1


def _queries(run: context.StandinRun, asked: bool) -> None:
    """Functions of ``torch.cuda`` that raise on a machine without it; where an accelerator is ``asked`` for,
    the script itself is told that there is one."""
    cuda: Any = torch.cuda
    real_available, real_count = cuda.is_available, cuda.device_count

    def is_available() -> bool:
        return (asked and _asked_by_user(run)) or bool(real_available())

    def device_count() -> int:
        return 1 if asked and _asked_by_user(run) else int(real_count())

    cuda.is_available, cuda.device_count = is_available, device_count
    for name in (
        "set_device",
        "synchronize",
        "empty_cache",
        "reset_peak_memory_stats",
        "ipc_collect",
        "init",
    ):
        setattr(cuda, name, lambda *args, **kwargs: None)
    for name in ("current_device", "memory_allocated", "max_memory_allocated", "memory_reserved"):
        setattr(cuda, name, lambda *args, **kwargs: 0)
    for name in ("current_stream", "default_stream"):
        setattr(cuda, name, lambda *args, **kwargs: _Event())
    cuda.Stream = cuda.Event = _Event
    cuda.stream = cuda.device = lambda *args, **kwargs: contextlib.nullcontext()
    cuda.get_device_name = lambda *args: "CPU"
    cuda.get_device_capability = lambda *args: (0, 0)
    cuda.get_device_properties = lambda *args: _Properties()
    cuda.mem_get_info = lambda *args: (1 << 30, 1 << 30)


def _mixed_precision(run: context.StandinRun) -> None:
    """Scalers of gradients, which have a form for the CPU, and autocast, which computes in full precision."""
    amp: Any = torch.amp
    scaler, autocast = getattr(amp, "GradScaler", None), amp.autocast_mode.autocast
    if scaler is None:  # torch before 2.3 has none for the CPU.
        run.used("a scaler of gradients", "one that does nothing")
        return
    real_scaler, real_autocast = scaler.__init__, autocast.__init__

    def scale(self: Any, device: str = "cuda", *args: Any, **kwargs: Any) -> None:
        real_scaler(self, "cpu" if _is_accelerator(device) else device, *args, **kwargs)

    def cast(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if _is_accelerator(device_type):
            run.used("autocast of an accelerator", "full precision")
        real_autocast(self, device_type, *args, **kwargs)

    scaler.__init__, autocast.__init__ = scale, cast


def _constructors(run: context.StandinRun) -> None:
    """Types of tensors of an accelerator, the default type and device, and where a file is loaded to."""
    for kind in ("Float", "Double", "Long", "Int", "Short", "Byte", "Bool", "Half"):
        setattr(torch.cuda, kind + "Tensor", getattr(torch, kind + "Tensor"))
    real_type, real_load = torch.set_default_tensor_type, torch.load

    def default_type(kind: Any) -> None:
        real_type(getattr(torch, kind.rpartition(".")[2]) if isinstance(kind, str) else kind)

    def load(*args: Any, **kwargs: Any) -> Any:
        return real_load(*args[:1], **{**kwargs, "map_location": "cpu"})

    torch.set_default_tensor_type, torch.load = default_type, load
    if hasattr(torch, "set_default_device"):
        torch.set_default_device = lambda device: None


def _world_of_one(run: context.StandinRun) -> None:
    """What a launcher of one process sets, and process groups of one member, which need no sockets."""
    run.used("a distributed training", "a world of one process")
    for name, text in ONE.items():
        os.environ.setdefault(name, text)
    distributed = torch.distributed
    real = distributed.init_process_group  # The probe lets a group of one do without sockets.

    def init(*args: Any, **kwargs: Any) -> Any:
        return real("gloo", world_size=1, rank=0)

    distributed.init_process_group = distributed.distributed_c10d.init_process_group = init
    wrapper = torch.nn.parallel.DistributedDataParallel
    real_init = wrapper.__init__

    def on_cpu(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, **kwargs: Any
    ) -> None:
        real_init(self, module, **kwargs)

    wrapper.__init__ = on_cpu  # type: ignore[method-assign,assignment]
    processes: Any = torch.multiprocessing

    def spawn(fn: Any, args: Any = (), nprocs: int = 1, *others: Any, **kwargs: Any) -> None:
        fn(0, *args)

    processes.spawn = spawn
