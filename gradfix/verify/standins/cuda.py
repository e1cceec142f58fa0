"""CUDA on a machine without it: everything happens on the CPU, and nothing else is different.

``torch.cuda.is_available()`` keeps saying no, as a script that asks has another way ready, unless it asks
only to give up. One that does not ask gets tensors on the CPU wherever it says ``cuda``.
"""

from __future__ import annotations

import ast
import contextlib
import copyreg
import re
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from . import content, context, parallel

FACTORIES = (
    "zeros ones empty full rand randn randint randperm arange range linspace logspace eye tensor as_tensor "
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like normal scalar_tensor "
    "from_file sparse_coo_tensor empty_strided asarray tril_indices triu_indices hann_window hamming_window "
    "bartlett_window blackman_window kaiser_window load complex polar Generator"
).split()
METHODS = "new_tensor new_zeros new_ones new_empty new_full".split()
ACCELERATORS = ("cuda", "mps", "xpu", "hip", "npu")


def accelerator(device: Any) -> bool:
    """Whether a device, or what names one, is an accelerator."""
    if isinstance(device, torch.device):
        return device.type in ACCELERATORS
    return isinstance(device, str) and device.split(":")[0] in ACCELERATORS


def install(run: context.Run) -> None:
    """Send to the CPU what is sent to an accelerator."""
    if torch.cuda.is_available():
        return
    moves(run)
    factories(run)
    queries(run)
    modules(run)
    spread(run)
    numbered(run)
    synchronized(run)


UNBOUND = re.compile(r"(?:local variable|name|free variable) '(\w+)'|object has no attribute '(\w+)'")
"""Messages about a name, or an attribute, that has not been given a value."""
UNCALLED = re.compile(r"'(?:function|builtin_function_or_method)'")
"""Messages about a function in the place of a value: ``torch.zeros(3).cuda() if CUDA else torch.zeros``."""
DEVICES = re.compile(r"cuda|gpu", re.I)


def advise(error: BaseException) -> str | None:
    """The plan in which there is an accelerator, if the run failed for a name that it has only with one.

    ``if args.cuda: data = data.cuda()``, where nothing gives ``data`` a value without.
    """
    run = context.run()
    if run.without and isinstance(error, (TypeError, AttributeError)) and UNCALLED.search(str(error)):
        return content.planned_with("torch", "available", True)
    frame, found = context.raised_in(error), UNBOUND.search(str(error))
    if not isinstance(error, (NameError, AttributeError)) or frame is None or found is None:
        return None
    if not run.owns(frame):
        return None
    tree = run.tree(frame.f_code.co_filename)
    around = [
        node
        for node in context.statements_at(tree, frame.f_lineno)
        if isinstance(node, ast.FunctionDef) and node.name == frame.f_code.co_name and found[1]
    ]
    name = found[1] or found[2]
    bound = [*bindings(around[-1] if around else tree, name)] or [*bindings(tree, name)]
    return content.planned_with("torch", "available", True) if bound and all(bound) else None


def advise_when_left(run: context.Run) -> str | None:
    """The same if the script was told that there is none, and has ended without a gradient."""
    return content.planned_with("torch", "available", True) if run.without else None


def bindings(node: ast.AST, name: str, with_one: bool = False) -> Iterator[bool]:
    """Of each place where a name, or an attribute, gets a value: whether only an accelerator leads there."""
    for child in ast.iter_child_nodes(node):
        asks = isinstance(node, ast.If) and child in node.body and not isinstance(node.test, ast.UnaryOp)
        inside = with_one or (asks and DEVICES.search(ast.unparse(node.test)) is not None)  # type: ignore[attr-defined]
        named = getattr(child, "id", getattr(child, "attr", getattr(child, "arg", None)))
        if named == name and (
            isinstance(child, ast.arg) or isinstance(getattr(child, "ctx", None), ast.Store)
        ):
            yield inside
        yield from bindings(child, name, inside)


def cpu(run: context.Run, device: Any) -> Any:
    """The device to use in place of ``device``."""
    if accelerator(device):
        run.used(str(device).split(":")[0], "the CPU")
        return torch.device("cpu")
    return device


class Device(type):
    """Stands for the type of devices, and makes them of numbers as well."""

    real: Any = torch.device

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and type(args[0]) is int:
            context.run().used("a device by its number", "that of an accelerator")
            return cls.real("cuda", args[0])
        return cls.real(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.real)


def made(kind: str, index: int | None) -> Any:
    """A device that was pickled."""
    return Device.real(kind, index)


def numbered(run: context.Run) -> None:
    """``torch.device(0)``, which asks for an accelerator; only in a run whose original failed for it."""
    if content.book.planned("torch", "devices by number"):
        copyreg.pickle(torch.device, lambda one: (made, (one.type, one.index)))
        torch.device = Device("device", (), {})  # type: ignore[assignment,misc]


def synchronized(run: context.Run) -> None:
    """``SyncBatchNorm``, which only computes on accelerators: in a world of one it is a batch norm."""
    norm = torch.nn.modules.batchnorm

    def forward(self: Any, input: torch.Tensor) -> torch.Tensor:
        run.used("SyncBatchNorm", "the batch norm of one process")
        return norm._BatchNorm.forward(self, input)

    context.replace(norm.SyncBatchNorm, "forward", forward)


def moves(run: context.Run) -> None:
    """``cuda``, ``to``, ``type`` and ``pin_memory`` of tensors, modules and packed sequences."""

    def stay(self: Any, *args: Any, **kwargs: Any) -> Any:
        run.used("cuda", "the CPU")
        return self

    def pin(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self

    for owner in (torch.Tensor, torch.nn.Module, torch.nn.utils.rnn.PackedSequence, torch.UntypedStorage):
        context.replace(owner, "cuda", stay)
    context.replace(torch.Tensor, "pin_memory", pin)

    for owner in (torch.Tensor, torch.nn.Module, torch.nn.utils.rnn.PackedSequence):

        def to(self: Any, *args: Any, _real: Any = owner.to, **kwargs: Any) -> Any:
            # A number stands for an accelerator's index.
            args = tuple(
                cpu(run, "cuda") if type(one) is int and index == 0 else cpu(run, one)
                for index, one in enumerate(args)
            )
            if "device" in kwargs:
                device = kwargs["device"]
                kwargs["device"] = cpu(run, "cuda" if type(device) is int else device)
            return _real(self, *args, **kwargs)

        context.replace(owner, "to", to)

    def kind(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], str):
            args = (args[0].replace("torch.cuda.", "torch."), *args[1:])
        return real_type(self, *args, **kwargs)

    real_type = context.replace(torch.Tensor, "type", kind)


def factories(run: context.Run) -> None:
    """The ``device`` of functions that make tensors, and ``torch.load``."""

    def here(real: Any) -> Any:
        def make(*args: Any, **kwargs: Any) -> Any:
            for name in ("device", "map_location"):
                if name in kwargs:
                    numbered = type(kwargs[name]) is int
                    kwargs[name] = cpu(run, "cuda" if numbered else kwargs[name])
            return real(*args, **kwargs)

        return make

    for name in FACTORIES:
        if name != "Generator" and hasattr(torch, name):
            context.replace(torch, name, here(getattr(torch, name)))
    for name in METHODS:
        context.replace(torch.Tensor, name, here(getattr(torch.Tensor, name)))
    for name in (
        "FloatTensor",
        "DoubleTensor",
        "LongTensor",
        "IntTensor",
        "ByteTensor",
        "HalfTensor",
        "BoolTensor",
        "ShortTensor",
    ):
        setattr(torch.cuda, name, getattr(torch, name))
    real_default = torch.set_default_tensor_type

    def default(kind: Any) -> None:
        kind = getattr(torch, kind.rpartition(".")[2]) if isinstance(kind, str) else kind
        # Another may stand for it, which takes contents too.
        real_default(kind.real if isinstance(kind, content.Constructor) else kind)

    context.replace(torch, "set_default_tensor_type", default)
    if hasattr(torch, "set_default_device"):
        real_device = torch.set_default_device
        context.replace(torch, "set_default_device", lambda device: real_device(cpu(run, device)))


class Stream:
    """A stream or an event of which there is only one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> Stream:
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

    wait = wait_stream = wait_event = synchronize = record_event = record


class Chosen(contextlib.AbstractContextManager[None]):
    """A device that is the current one for a while: there is only one."""

    def __init__(self, device: Any = 0) -> None:
        self.idx = device if type(device) is int else 0

    def __exit__(self, *error: Any) -> None:
        pass


class Properties:
    """What a device would say of itself."""

    name = "CPU"
    major, minor = 0, 0
    total_memory = 1 << 30
    multi_processor_count = 1


def demanded(run: context.Run, asked: str) -> bool:
    """Whether the user's code gives up if what it ``asked`` says that there is no device, or too few.

    It is in an ``assert``, or in the condition of an ``if`` that gives up; a function of the user that
    asks is looked through.
    """
    frame = context.caller_of_standins(run)
    while frame is not None and run.owns(frame):
        for node in context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno):
            if isinstance(node, ast.Assert):
                return True
            if isinstance(node, ast.If) and asked in ast.unparse(node.test) and too_little(node.test):
                if node.test.lineno <= frame.f_lineno <= (node.test.end_lineno or 0):
                    return context.gives_up(node.body)
            if isinstance(node, ast.If) and isinstance(node.test, ast.Call) and node.orelse:
                # ``if it: ... else: raise``
                if node.test.lineno == frame.f_lineno and asked in ast.unparse(node.test):
                    return not nested(node.orelse) and context.gives_up(node.orelse)
        asked, frame = frame.f_code.co_name, frame.f_back
    return False


def too_little(test: ast.expr) -> bool:
    """Whether a condition holds where there is not enough: ``not it``, ``it < 2``, ``it == 0``."""
    if isinstance(test, ast.BoolOp):
        return any(too_little(one) for one in test.values)
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Eq))
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def nested(body: list[ast.stmt]) -> bool:
    """Whether statements hold others that may not be reached."""
    return any(isinstance(one, (ast.If, ast.For, ast.While, ast.Try, ast.With)) for one in body)


def queries(run: context.Run) -> None:
    """Functions of ``torch.cuda`` that raise on a machine without it."""

    owners = [torch.cuda, *([torch.accelerator] if hasattr(torch, "accelerator") else [])]

    def available() -> bool:
        asked = context.caller_of_standins(run) is not None
        wanted = asked and content.book.planned("torch", "available")
        if not wanted and not demanded(run, "is_available"):
            run.without |= asked
            return False
        run.used("cuda", "the CPU")
        return True

    def count() -> int:
        planned = content.book.planned("torch", "devices")
        if planned and context.caller_of_standins(run) is not None:
            run.devices = planned
            run.used("one accelerator" if planned == 1 else f"{planned} accelerators", "the CPU")
            return int(planned)
        if not demanded(run, "device_count"):
            return 0
        run.devices = parallel.DEVICES
        run.used(f"{run.devices} accelerators", "the CPU")
        return run.devices

    for owner in owners:
        context.replace(owner, "is_available", available)
        context.replace(owner, "device_count", count)
    accelerators(run)
    nothing: Any = lambda *args, **kwargs: None  # noqa: E731
    zero: Any = lambda *args, **kwargs: 0  # noqa: E731
    for name in (
        "set_device",
        "synchronize",
        "empty_cache",
        "reset_peak_memory_stats",
        "init",
        "ipc_collect",
    ):
        context.replace(torch.cuda, name, nothing)
    for name in ("current_device", "memory_allocated", "max_memory_allocated", "memory_reserved"):
        context.replace(torch.cuda, name, zero)
    for name in ("get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all"):
        context.replace(torch.cuda, name, lambda *args, **kwargs: torch.zeros(0, dtype=torch.uint8))
    context.replace(torch.cuda, "stream", lambda *args, **kwargs: contextlib.nullcontext())
    # torch asks of devices whether they are of these types.
    torch.cuda.device = torch.cuda.device_of = Chosen  # type: ignore[assignment, misc]
    context.replace(torch.cuda, "get_device_name", lambda *args: "CPU")
    context.replace(torch.cuda, "get_device_capability", lambda *args: (0, 0))
    context.replace(torch.cuda, "get_device_properties", lambda *args: Properties())
    context.replace(torch.cuda, "mem_get_info", lambda *args: (1 << 30, 1 << 30))
    torch.cuda.Stream = Stream  # type: ignore[assignment,misc]
    torch.cuda.Event = Stream  # type: ignore[assignment,misc]
    context.replace(torch.cuda, "current_stream", lambda *args: Stream())
    context.replace(torch.cuda, "default_stream", lambda *args: Stream())


def accelerators(run: context.Run) -> None:
    """``torch.accelerator.current_accelerator()``: none, except to who asks for a part of it at once."""
    if not hasattr(torch, "accelerator"):
        return

    def current(*args: Any, **kwargs: Any) -> Any:
        frame = context.caller_of_standins(run)
        after = None if frame is None else context.following(frame)
        if after is None or after.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            return None
        return torch.device("cuda")

    context.replace(torch.accelerator, "current_accelerator", current)
    for name in ("set_device_index", "set_device_idx", "synchronize"):
        if hasattr(torch.accelerator, name):
            context.replace(torch.accelerator, name, lambda *args, **kwargs: None)


def modules(run: context.Run) -> None:
    """``DataParallel`` over devices that are not there: over none."""
    real = torch.nn.DataParallel.__init__

    def init(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        real(self, module, None, None, dim)
        asked[self] = list(device_ids) if isinstance(device_ids, (list, tuple)) and device_ids else [0]

    asked: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
    context.replace(torch.nn.DataParallel, "__init__", init)
    real_forward, real_scatter = torch.nn.DataParallel.forward, torch.nn.DataParallel.scatter

    def forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        if type(self).scatter is real_scatter:
            return real_forward(self, *inputs, **kwargs)
        # The project's own way of dividing a batch; the first of its parts is computed.
        parts, named = self.scatter(inputs, kwargs, asked[self])
        return self.module(*parts[0], **(named[0] if named else {}))

    context.replace(torch.nn.DataParallel, "forward", forward)

    def parallel(module: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        return module(*inputs)

    torch.nn.parallel.data_parallel = parallel


def spread(run: context.Run) -> None:
    """What ``torch.nn.parallel`` is made of: copies for devices, parts of batches, and what brings them
    together again. All devices are the CPU."""
    functions, comm = torch.nn.parallel._functions, torch.nn.parallel.comm

    def count(devices: Any) -> int:
        found = len(list(devices))
        run.used("torch.nn.parallel", f"the CPU as each of {found} devices")
        return found

    def broadcast(tensors: Any, devices: Any = (), *args: Any, **kwargs: Any) -> Any:
        # On the first device they are already.
        return [
            [one.clone() if place else one.view_as(one) for one in tensors] for place in range(count(devices))
        ]

    def copies(devices: Any, *tensors: torch.Tensor) -> Any:
        return tuple(one for held in broadcast(tensors, devices) for one in held)

    def parts(devices: Any, sizes: Any, dim: int, tensor: torch.Tensor) -> Any:
        if sizes is None:
            return tensor.chunk(count(devices), dim)
        return torch.split(tensor, list(sizes), dim)

    def together(device: Any, dim: int, *tensors: torch.Tensor) -> torch.Tensor:
        whole = any(one.dim() for one in tensors)
        return torch.cat(tensors, dim) if whole else torch.stack(tensors)

    def apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
        named = kwargs_tup or [{}] * len(modules)
        given = [one if isinstance(one, (list, tuple)) else (one,) for one in inputs]
        return [module(*one, **more) for module, one, more in zip(modules, given, named)]

    applied: tuple[Any, ...] = (functions.Broadcast, functions.Scatter, functions.Gather)
    for owner, meant in zip(applied, (copies, parts, together)):
        owner.apply = meant
    context.replace(comm, "broadcast_coalesced", broadcast)
    for module in (torch.nn.parallel, sys.modules["torch.nn.parallel.parallel_apply"]):
        module.parallel_apply = apply  # type: ignore[attr-defined]
