"""What notes backward calls and optimizer steps while the script runs."""

from __future__ import annotations

import collections
import itertools
import sys
import threading
import types
from typing import Any

from .own_code import Place, places
from .trainings import LOOKED_AT, Training

EVENTS = 64
ROOTS = 4
OPTIMIZERS = 32
"""Optimizers that are looked at."""


class Event:
    """A backward call or an optimizer step."""

    __slots__ = ("clock", "number", "optimizer", "partial", "places", "retained", "roots", "thread")

    def __init__(self, number: int, clock: int, places: list[Place]) -> None:
        self.number = number
        self.clock = clock
        """The number that the next graph node made in this thread gets."""
        self.places = places
        """The lines of the user's files that led here, innermost first."""
        self.thread = threading.get_ident()
        self.roots: list[Any] = []
        self.retained = False
        self.partial = False
        self.optimizer: int | None = None
        """The identity of the optimizer; ``None`` for a backward call."""


class Watch:
    """What has happened so far."""

    def __init__(self) -> None:
        self.events: collections.deque[Event] = collections.deque(maxlen=EVENTS)
        self.kept: collections.deque[Event] = collections.deque()
        self.numbers = itertools.count()
        self.clock: Any = lambda: -1
        self.attached = False
        self.backwards = 0
        """How many backward calls there were."""
        self.trainings: dict[int, Training] = {}
        """By the identity of the optimizer."""
        self.had: set[int] = set()
        """The identities of the parameters that any step has found with a gradient."""
        self.called: set[int] = set()
        """The identities of the parameters whose layers were called, of those that had none at first."""
        self.noting: Any = None
        """What takes away again the hook that notes these calls."""

    def attach(self) -> None:
        """Hook into torch, as soon as the parts that this needs are there."""
        variable = getattr(sys.modules.get("torch.autograd.variable"), "Variable", None)
        optimizer = sys.modules.get("torch.optim.optimizer")
        autograd = getattr(getattr(sys.modules.get("torch"), "_C", None), "_autograd", None)
        if variable is None or autograd is None or not hasattr(optimizer, "Optimizer"):
            return
        self.attached = True
        try:
            self.clock = getattr(autograd, "_get_sequence_nr", self.clock)
            self.replace_engine(variable)
            optimizer.register_optimizer_step_pre_hook(self.stepping)  # type: ignore[union-attr]
            optimizer.register_optimizer_step_post_hook(self.stepped)  # type: ignore[union-attr]
        except Exception as error:  # The script goes on, whatever this torch is like.
            print(f"gradfix: this torch cannot be watched: {error}", file=sys.stderr)

    def replace_engine(self, variable: Any) -> None:
        genuine = variable._execution_engine
        backward = self.backward

        class Engine(type(genuine)):  # type: ignore[misc]
            """torch's engine, which is asked for ``run_backward`` before each use of it."""

            @property
            def run_backward(self) -> Any:
                backward(sys._getframe(1))
                return genuine.run_backward

        variable._execution_engine = Engine()

    def event(self, frame: types.FrameType | None) -> Event:
        event = Event(next(self.numbers), self.clock(), places(frame))
        self.events.append(event)
        return event

    def backward(self, frame: types.FrameType) -> None:
        """A backward call is about to run; ``frame`` is the one that calls the engine."""
        try:
            self.backwards += 1
            event = self.event(frame)
            names = frame.f_locals
            arguments = names.get("args", ())
            roots = roots_of(names)
            # run_backward(tensors, gradients, retain_graph, create_graph, inputs, ...)
            event.retained = bool(arguments[1]) if len(arguments) > 1 else True
            event.partial = bool(arguments[3]) if len(arguments) > 3 else False
            if self.kept and self.kept[-1].partial:
                self.kept.pop().roots = []
            if not event.retained:
                event.roots = [root.grad_fn for root in roots if root.grad_fn is not None]
                self.kept.append(event)
            if len(self.kept) > ROOTS:
                self.kept.popleft().roots = []
        except Exception:  # The script goes on, whatever torch looks like.
            return

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """An optimizer has made a step."""
        frame = sys._getframe(1)
        self.event(frame).optimizer = id(optimizer)
        self.look(optimizer, frame, done=True)
        self.note_calls()

    def stepping(self, optimizer: Any, *_: Any) -> None:
        """An optimizer is about to make a step."""
        self.look(optimizer, sys._getframe(1), done=False)

    def look(self, optimizer: Any, frame: types.FrameType, *, done: bool) -> None:
        """Note which parameters of an optimizer have a gradient now."""
        try:
            known = self.trainings.get(id(optimizer))
            if known is None or known.optimizer() is not optimizer:
                if len(self.trainings) == OPTIMIZERS:
                    return
                known = self.trainings[id(optimizer)] = Training(optimizer, frame)
            known.look(optimizer, self.had, done=done)
        except Exception:  # The script goes on, whatever its optimizers look like.
            return

    def note_calls(self) -> None:
        """Have the layers noted that are called although a first step has found no gradient in them.

        That costs a little at each call of a layer, and is done for as many steps as gradients are looked at.
        """
        try:
            steps = [one.steps for one in self.trainings.values()]
            if self.noting is not None and min(steps) >= LOOKED_AT:
                self.noting.remove()
                self.noting = None
            elif self.noting is None and max(steps) < LOOKED_AT:
                if any(one.never and not one.is_idle for one in self.trainings.values()):
                    module = sys.modules["torch.nn.modules.module"]
                    self.noting = module.register_module_forward_pre_hook(self.calling)
        except Exception:  # The script goes on, whatever its torch looks like.
            return

    def calling(self, module: Any, _: Any) -> None:
        """A layer is about to be called."""
        self.called.update(id(one) for one in module._parameters.values() if one is not None)


class Awaiting:
    """A finder that finds nothing: it only sees that modules are being imported."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Attach to torch once it is there."""
        if not self.watch.attached and "torch.optim.optimizer" in sys.modules:
            self.watch.attach()


def roots_of(names: dict[str, Any]) -> list[Any]:
    """The tensors from which a backward call starts, in the names of the function that calls the engine."""
    for name in ("t_outputs", "outputs", "tensors"):
        roots = names.get(name)
        if isinstance(roots, (tuple, list)):
            return [root for root in roots if hasattr(root, "grad_fn")]
    return []
