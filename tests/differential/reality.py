"""Runs a program under PyTorch and records what autograd did with it.

The program is executed in this process, and torch is watched where gradients are made, cleared and
consumed: ``backward`` and ``autograd.grad`` with the accumulation that they do, writes of zeros, and the
construction and the steps of optimizers. Parameters are followed from their registration, to know which
belong to one layer.
"""

from __future__ import annotations

import contextlib
import copy
import io
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from outcome import FILE, Block, Called, Outcome, Stepped
from torch.optim.optimizer import register_optimizer_step_pre_hook

MESSAGES = (
    ("backward through the graph a second time", "E1"),
    ("has been modified by an inplace operation", "E2"),
    ("does not require grad and does not have a grad_fn", "E3"),
    ("a leaf Variable that requires grad is being used in an in-place operation", "E4"),
    ("is being modified inplace", "E5"),
)
"""What autograd says, and what the model calls it."""


SECONDS = 20
"""Programs take milliseconds; the first one waits for parts of torch to be imported."""


class Unsuitable(Exception):
    """The program fails for another reason than autograd's: the generator is wrong."""


def run(source: str) -> Outcome:
    """Execute ``source`` under torch.

    Raises:
        Unsuitable: it ended in an error that is not one of autograd's own.
    """
    recorder = _Recorder()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    error: tuple[str, int] | None = None
    code = compile(source, FILE, "exec")
    with recorder.watching(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            with _limited():
                exec(code, namespace)
        except Exception as exception:
            error = _classify(exception)
    torch.set_grad_enabled(True)
    return Outcome(tuple(recorder.events), error)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Stop a program that does not end by itself (shrinking makes such ones)."""

    def stop(number: int, frame: object) -> None:
        raise Unsuitable(f"line {_line()}: TimeoutError: more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _classify(exception: Exception) -> tuple[str, int]:
    line = 0
    trace = exception.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(exception, RuntimeError):
        for text, kind in MESSAGES:
            if text in str(exception):
                return kind, line
    raise Unsuitable(f"line {line}: {type(exception).__name__}: {exception}") from exception


def _line() -> int:
    """The line of the program that is running."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != FILE:
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_lineno if frame is not None else 0


class _Recorder:
    """The events of one execution, in order."""

    def __init__(self) -> None:
        self.events: list[Called | Stepped] = []
        self.created: dict[int, int] = {}
        """Optimizer -> the line where it was made."""
        self.owner: dict[int, Any] = {}
        """Parameter -> the module of torch that it belongs to; others are blocks of their own."""
        self.parameters: dict[int, torch.Tensor] = {}
        self.hooked: set[int] = set()
        self.received: set[int] = set()
        """Parameters whose gradients the backward in progress added to."""
        self.inside: dict[int, dict[int, dict[int, int]]] = {}
        """Parameter -> backward -> optimizer -> how often it consumed that backward's part."""
        self.zeroed: dict[int, torch.Tensor] = {}
        """Memory that was set to zero since gradients were last looked at, kept from being used again."""
        self.kept: list[Any] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch torch while a program runs."""
        originals = (
            (torch.autograd, "backward", torch.autograd.backward, self._backward),
            (torch.autograd, "grad", torch.autograd.grad, self._backward),
            (torch.optim.Optimizer, "__init__", torch.optim.Optimizer.__init__, self._optimizer),
            (torch.nn.Module, "register_parameter", torch.nn.Module.register_parameter, self._register),
            (torch.Tensor, "zero_", torch.Tensor.zero_, self._zero),
            (torch, "_foreach_zero_", torch._foreach_zero_, self._zero),
            (copy, "deepcopy", copy.deepcopy, self._copy),
        )
        hook = register_optimizer_step_pre_hook(self._step)
        for holder, name, original, wrap in originals:
            setattr(holder, name, wrap(original))
        try:
            yield
        finally:
            for holder, name, original, _ in originals:
                if holder is torch.Tensor:
                    delattr(holder, name)  # It was inherited.
                else:
                    setattr(holder, name, original)
            hook.remove()

    def _register(self, original: Callable[..., None]) -> Callable[..., None]:
        def register_parameter(module: torch.nn.Module, name: str, parameter: Any) -> None:
            original(module, name, parameter)
            self._belongs(module, parameter)

        return register_parameter

    def _belongs(self, module: torch.nn.Module, parameter: Any) -> None:
        if parameter is not None:
            self.kept.append((module, parameter))
            if type(module).__module__.startswith("torch.") and "Parameter" not in type(module).__name__:
                self.owner[id(parameter)] = id(module)

    def _copy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def deepcopy(value: Any, *args: Any) -> Any:
            result = original(value, *args)
            if isinstance(result, torch.nn.Module):
                for module in result.modules():
                    for parameter in module.parameters(recurse=False):
                        self._belongs(module, parameter)
            return result

        return deepcopy

    def _optimizer(self, original: Callable[..., None]) -> Callable[..., None]:
        def __init__(optimizer: torch.optim.Optimizer, *args: Any, **keywords: Any) -> None:
            original(optimizer, *args, **keywords)
            self.kept.append(optimizer)
            self.created[id(optimizer)] = _line()
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    self.parameters.setdefault(id(parameter), parameter)

        return __init__

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **keywords: Any) -> Any:
            self._look()
            number = len(self.events)
            self.events.append(Called(_line()))
            self.received.clear()
            for key, parameter in self.parameters.items():
                if parameter.requires_grad and key not in self.hooked:
                    self.hooked.add(key)
                    parameter.register_post_accumulate_grad_hook(self._received)
            try:
                return original(*args, **keywords)
            finally:
                for key in self.received:
                    self.inside.setdefault(key, {})[number] = {}

        return backward

    def _received(self, parameter: torch.Tensor) -> None:
        # Called for what was frozen after the forward, too, whose gradient is left alone.
        if parameter.requires_grad:
            self.received.add(id(parameter))

    def _zero(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def zero_(tensors: Any, *args: Any, **keywords: Any) -> Any:
            for tensor in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
                self.zeroed[tensor.data_ptr()] = tensor
            return original(tensors, *args, **keywords)

        return zero_

    def _look(self) -> None:
        """Notice the gradients that were cleared since."""
        for key, parameter in self.parameters.items():
            if parameter.grad is None:
                self.inside.pop(key, None)
            elif parameter.grad.data_ptr() in self.zeroed:
                self.inside[key] = {}
        self.zeroed.clear()

    def _step(self, optimizer: torch.optim.Optimizer, args: Any, keywords: Any) -> Any:
        closure = keywords.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self._consume(optimizer)
            return None

        def first() -> Any:
            # What the closure accumulates is consumed by this step.
            result = closure()
            self._consume(optimizer)
            return result

        return (args[0], first), {}

    def _consume(self, optimizer: torch.optim.Optimizer) -> None:
        self._look()
        blocks: dict[Any, list[torch.Tensor]] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                blocks.setdefault(self.owner.get(id(parameter), parameter), []).append(parameter)
        consumed = tuple(self._block(optimizer, parameters) for parameters in blocks.values())
        self.events.append(Stepped(_line(), self.created.get(id(optimizer), 0), consumed))

    def _block(self, optimizer: torch.optim.Optimizer, parameters: list[torch.Tensor]) -> Block:
        held = [self.inside.get(id(p), {}) for p in parameters if p.grad is not None]
        if not held:
            return None
        found = {(n, uses.get(id(optimizer), 0)) for parts in held for n, uses in parts.items()}
        for parts in held:
            for uses in parts.values():
                uses[id(optimizer)] = uses.get(id(optimizer), 0) + 1
        return frozenset(found)
