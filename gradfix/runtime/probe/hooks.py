"""The hooks that put the recorder on torch: backward calls, optimizers, their steps."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

import torch

from . import traversal, views
from .backward import backward as watched_backward
from .holding import Holding, Weights
from .recorder import Recorder


def install(recorder: Recorder) -> None:
    """Put the watch on torch: backward calls, optimizers, their steps."""
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    keep = recorder.job["keep"]
    holding = Holding(recorder)
    real_backward, real_grad = torch.autograd.backward, torch.autograd.grad
    real_init = torch.optim.Optimizer.__init__

    def retained(position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        if not keep:
            return args, kwargs
        if len(args) > position:
            return (*args[:position], True, *args[position + 1 :]), kwargs
        return args, {**kwargs, "retain_graph": True}

    @functools.wraps(real_backward)
    def backward(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = retained(2, args, kwargs)
        if recorder.watching():
            if recorder.job["scout"]:
                return recorder.pass_by(real_backward, args, kwargs)
            return watched_backward(recorder, real_backward, args, kwargs)
        return real_backward(*args, **kwargs)

    @functools.wraps(real_grad)
    def grad(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = retained(3, args, kwargs)
        if not recorder.watching():
            return real_grad(*args, **kwargs)
        recorder.provenance.leave_if_lost()
        try:
            with recorder.inside():
                return real_grad(*args, **kwargs)
        except Exception as error:
            recorder.failed(error, "grad", recorder.places.here())
            raise

    @functools.wraps(real_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        real_init(self, *args, **kwargs)
        if recorder.watching():
            with recorder.bookkeeping():
                recorder.constructed(self, recorder.places.here())

    def noting(real: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(real)

        @functools.wraps(real)
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(parameters, torch.Tensor):
                parameters = list(parameters)
            result = real(parameters, *args, **kwargs)
            if recorder.watching():
                bound = signature.bind(parameters, *args, **kwargs)
                bound.apply_defaults()
                listed = [parameters] if isinstance(parameters, torch.Tensor) else parameters
                recorder.clipped(listed, bound.arguments, result)
            return result

        return clip

    def before(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not recorder.watching() or recorder.job["scout"]:
            return None
        at = recorder.places.here()
        holding.begin(optimizer)
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            recorder.step(optimizer, at)
            return None

        # With a closure the gradients come to be within the step: once per evaluation, and between two of
        # them the optimizer may move the weights.
        with recorder.bookkeeping():
            weights = None if recorder.job["fake"] else Weights(optimizer)

        def evaluate() -> Any:
            if weights is not None:
                with recorder.bookkeeping():
                    if weights.moved() and not holding.put_back(optimizer):
                        recorder.traversals.stepped(weights.tensors)
                    weights.look()
            loss = closure()
            recorder.step(optimizer, at)
            return loss

        if len(args) > 1:
            return (args[0], evaluate, *args[2:]), kwargs
        return args, {**kwargs, "closure": evaluate}

    def after(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if recorder.job["scout"]:
            if recorder.watching():
                recorder.passed(optimizer)
            return
        if recorder.job["updates"] and recorder.watching() and not recorder.idling:
            recorder.stepped(optimizer)
        if recorder.watching() and not recorder.idling and not holding.active:
            with recorder.bookkeeping():
                recorder.dither(optimizer)
                tensors = (one for group in optimizer.param_groups for one in group["params"])
                recorder.traversals.stepped(tensors)
        holding.end(optimizer)

    real_enter = torch.autocast.__enter__

    @functools.wraps(real_enter)
    def enter(self: Any) -> Any:
        if recorder.watching() and getattr(self, "_enabled", True):
            with recorder.bookkeeping():
                recorder.cast(getattr(self, "fast_dtype", None))
        return real_enter(self)  # type: ignore[no-untyped-call]

    if recorder.job["dither"]:
        torch.autocast.__enter__ = enter  # type: ignore[method-assign]
    if recorder.job["blind"]:
        torch.set_grad_enabled(False)
        torch._C._set_grad_enabled = lambda enabled: None
    if keep:
        views.separate()
    recorder.effects.install()
    traversal.watch_draws()
    torch.autograd.backward = backward
    torch.autograd.grad = grad
    torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]
    if recorder.job["updates"]:
        watch_adjustments(recorder)
        clips = torch.nn.utils.clip_grad
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            wrapped = noting(getattr(clips, name))
            setattr(clips, name, wrapped)
            setattr(torch.nn.utils, name, wrapped)
    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    # Accelerators are hidden: results there are not repeatable, and a fork cannot use them.
    if hasattr(torch.backends, "mps"):
        torch.backends.mps.is_available = lambda: False  # type: ignore[assignment]


def watch_adjustments(recorder: Recorder) -> None:
    """Note when a program has gradients unscaled, and when it has a schedule set the learning rate.

    Not so where torch does it within another call: a schedule that is made takes a first step, one that
    consists of others has these take theirs, and a scaler that steps unscales what is not unscaled yet.
    """
    within = threading.local()

    def watching(
        real: Callable[..., Any], note: Callable[[tuple[Any, ...]], None] | None = None
    ) -> Callable[..., Any]:
        @functools.wraps(real)
        def watched(*args: Any, **kwargs: Any) -> Any:
            outermost = not getattr(within, "another", False)
            if outermost and note is not None and recorder.watching() and not kwargs:
                note(args)
            within.another = True
            try:
                return real(*args, **kwargs)
            finally:
                within.another = not outermost

        return watched

    def scheduled(args: tuple[Any, ...]) -> None:
        # Who says by what it is set sets it himself.
        if len(args) == 1:
            recorder.adjusted("scheduled", getattr(args[0], "optimizer", None))

    def unscaled(args: tuple[Any, ...]) -> None:
        recorder.adjusted("unscaled", args[-1])

    made = torch.optim.lr_scheduler
    schedules: list[Any] = [getattr(made, "LRScheduler", None) or made._LRScheduler]
    for kind in schedules:
        schedules.extend(kind.__subclasses__())
        for name, note in (("step", scheduled), ("_initial_step", None)):
            if name in vars(kind):
                setattr(kind, name, watching(vars(kind)[name], note))
    scaler: Any = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    real_unscale = scaler.unscale_

    @functools.wraps(real_unscale)
    def unscale(self: Any, optimizer: Any) -> None:
        real_unscale(self, optimizer)
        if recorder.watching() and self.is_enabled():
            recorder.multiplied(optimizer, 1 / self.get_scale())

    scaler.unscale_ = watching(unscale, unscaled)
    scaler.step = watching(scaler.step)
