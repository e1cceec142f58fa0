"""Engines: a function for each batch, and others between them."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from ...inert import others


class Filtered:
    """An event that is told only sometimes."""

    def __init__(self, event: Any, every: int | None, once: Any, chosen: Any) -> None:
        self.event, self.every, self.once, self.chosen = event, every, once, chosen

    def told(self, engine: Any, count: int) -> bool:
        """Whether it is told at a count."""
        if self.once is not None:
            return count in (self.once if isinstance(self.once, (list, tuple)) else (self.once,))
        if self.chosen is not None:
            return bool(self.chosen(engine, count))
        return count % (self.every or 1) == 0


class Events(enum.Enum):
    """What happens in a loop."""

    STARTED = "started"
    EPOCH_STARTED = "epoch_started"
    GET_BATCH_STARTED = "get_batch_started"
    GET_BATCH_COMPLETED = "get_batch_completed"
    ITERATION_STARTED = "iteration_started"
    ITERATION_COMPLETED = "iteration_completed"
    EPOCH_COMPLETED = "epoch_completed"
    COMPLETED = "completed"
    EXCEPTION_RAISED = "exception_raised"
    TERMINATE = "terminate"

    def __call__(self, event_filter: Any = None, every: Any = None, once: Any = None, **kwargs: Any) -> Any:
        return Filtered(self, every, once, event_filter)

    def __or__(self, other: Any) -> Any:
        return [self, other]


class Engine:
    """A loop over batches."""

    def __init__(self, process_function: Callable[..., Any]) -> None:
        self.function = process_function
        self.handlers: list[tuple[Any, Any, Any, Any]] = []
        self.state = SimpleNamespace(
            epoch=0,
            iteration=0,
            output=None,
            batch=None,
            metrics=defaultdict(float),
            max_epochs=None,
            epoch_length=None,
            times={},
        )
        self.should_terminate = False
        self.logger: Any = None

    def on(self, event: Any, *args: Any, **kwargs: Any) -> Any:
        """A decorator of what is called at an event."""

        def decorate(function: Any) -> Any:
            self.add_event_handler(event, function, *args, **kwargs)
            return function

        return decorate

    def add_event_handler(self, event: Any, handler: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function at an event."""
        for one in event if isinstance(event, list) else [event]:
            self.handlers.append((one, handler, args, kwargs))
        return SimpleNamespace(remove=lambda: None)

    def has_event_handler(self, handler: Any, *args: Any) -> bool:
        """Whether a function is called at any."""
        return any(one[1] is handler for one in self.handlers)

    def register_events(self, *args: Any, **kwargs: Any) -> None:
        """Events of one's own are told by name."""

    def fire_event(self, event: Any) -> None:
        """Tell of an event."""
        epoch = "epoch" in str(getattr(event, "value", event))
        count = self.state.epoch if epoch else self.state.iteration
        for one, handler, args, kwargs in self.handlers:
            filtered = isinstance(one, Filtered)
            if (one.event if filtered else one) == event and (not filtered or one.told(self, count)):
                if isinstance(handler, torch.nn.Module) or not callable(handler):
                    continue
                _called(handler, self, *args, **kwargs)

    def terminate(self, *args: Any) -> None:
        """End after this batch."""
        self.should_terminate = True

    def run(self, data: Any, max_epochs: Any = 1, epoch_length: Any = None, **kwargs: Any) -> Any:
        """The loop."""
        self.state.max_epochs = max_epochs or 1
        self.state.dataloader = data
        self.state.epoch_length = epoch_length or (len(data) if hasattr(data, "__len__") else None)
        self.state.epoch = self.state.iteration = 0
        self.should_terminate = False
        self.fire_event(Events.STARTED)
        for epoch in range(self.state.max_epochs):
            self.state.epoch = epoch + 1
            self.fire_event(Events.EPOCH_STARTED)
            for number, batch in enumerate(data):
                if self.should_terminate or (epoch_length and number >= epoch_length):
                    break
                self.state.batch, self.state.iteration = batch, self.state.iteration + 1
                self.fire_event(Events.ITERATION_STARTED)
                self.state.output = self.function(self, batch)
                self.fire_event(Events.ITERATION_COMPLETED)
            if self.should_terminate:
                break
            self.fire_event(Events.EPOCH_COMPLETED)
        self.fire_event(Events.COMPLETED)
        return self.state


def _called(handler: Any, engine: Engine, *args: Any, **kwargs: Any) -> None:
    code = getattr(getattr(handler, "__func__", handler), "__code__", None)
    takes = code is None or code.co_argcount - hasattr(handler, "__self__") > len(args) or code.co_flags & 4
    handler(*([engine] if takes else []), *args, **kwargs)


def create_supervised_trainer(
    model: Any, optimizer: Any, loss_fn: Any, device: Any = None, **kwargs: Any
) -> Engine:
    """Steps by pairs of what goes in and what should come out."""
    prepare = kwargs.get("prepare_batch") or (lambda batch, **more: batch)
    transform = kwargs.get("output_transform") or (lambda x, y, answer, loss: loss.item())

    def update(engine: Engine, batch: Any) -> Any:
        model.train()
        optimizer.zero_grad()
        x, y = prepare(batch, device=device, non_blocking=False)
        answer = model(x)
        loss = loss_fn(answer, y)
        loss.backward()
        optimizer.step()
        return transform(x, y, answer, loss)

    return Engine(update)


def create_supervised_evaluator(model: Any, metrics: Any = None, device: Any = None, **kwargs: Any) -> Engine:
    """Answers without steps."""
    prepare = kwargs.get("prepare_batch") or (lambda batch, **more: batch)

    def infer(engine: Engine, batch: Any) -> Any:
        model.eval()
        with torch.no_grad():
            x, y = prepare(batch, device=device, non_blocking=False)
            return model(x), y

    return Engine(infer)


__getattr__ = others(__name__)
