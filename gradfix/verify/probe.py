"""Run training scripts under watch, in the user's interpreter.

This file is executed, never imported by gradfix: it may use the standard library and torch
only, and no syntax newer than Python 3.9. Two ways to call it::

    python probe.py JOB.json    run one job in this process
    python probe.py --serve WORKERS FOLDER HELD
                                import torch once, read paths of job files from standard input, fork a
                                process for each (so many at a time), answer a line of JSON when one is over;
                                FOLDER is removed if the caller ends before, and HELD says what the kernel
                                holds, by commas (see ``sandbox.Level``)
    python probe.py --serve WORKERS FOLDER HELD EXECUTABLE PREFIX...
                                the same for an interpreter of which nothing may run outside the sandbox: this
                                one imports nothing, and each of the processes becomes that one once it is
                                confined. It is installed below these prefixes
    python probe.py --confined JOB EVENTS VALUES
                                what it becomes: run the job in a process that is confined already; the
                                arguments are descriptors

A job is a JSON object: ``path`` (the file under test), ``source`` (the text to run in its place), ``root``
(the project's folder), ``folder`` (where to write), ``command`` (how the user runs it: ``entry``, the script
that is started, which may be another that imports the file; ``module``, its name for ``python -m``, or
``null``; ``args``; ``cwd``, the working directory; ``readable``, further folders that may be read; ``env``,
variables of the user's by name), ``imports`` (the folders on ``PYTHONPATH``, of which this process was given
only those that are not the code's), ``seed``, ``watched``, ``scout``, ``corrections``, ``keep``, ``blind``,
``still``, ``dither``, ``alone``, ``moves``, ``numbered``, ``numbers``, ``fake``, ``thorough``, ``updates``,
``level`` (see the module ``sandbox`` beside this one), ``shared`` (whether private file systems are to be
had) and ``limits`` (``steps``, ``backwards``, ``seconds``, ``memory``, ``file`` and ``disk`` in bytes,
``files``, ``tasks``). ``schema`` says what takes the place of data and devices that the run does not have:
nothing, if it is empty (see ``standins/__init__.py``). Where a run fails for want of something, the event
``schema`` has the schema with which it might get further.

``watched`` lists pieces of the text of which it is noted that they are executed (see ``coverage.py``). A run
that is to ``scout`` records nothing else but after how many steps and backward calls that was: for ``pieces``
it ends when all were, and every optimizer has stepped a few times; for ``errors`` it goes on to one.

A run that is to ``dither`` rounds otherwise (Monte Carlo arithmetic): it moves all weights by as little as
their type can tell, when they are handed to an optimizer and after each step, and every gradient on its way
through a graph. The number, if it is not 0, seeds the signs. Such a run records for each gradient what the
terms that it is the sum of come to without their signs, times the precision of its type: what rounding may
leave of a sum that is zero.

``corrections`` are a list of ``[call, cut, [[optimizer, position], ...]]``: what that backward call (counted
from 0) gives by way of what its losses take for constants is cut off, and these parameters get nothing of it.

``keep`` makes the original's own graph usable whatever is stepped or freed: every backward retains its graph,
and every saved tensor is kept as it was when it was saved. ``still`` puts the weights back after each
optimizer step, so that a forward repeated later computes the same; with ``alone``, the number of an
optimizer, all but after its own. ``moves`` puts them back, too, but after some of the steps to other weights
than before, the same ones in every run: it has, for each optimizer, a number that stands for it in all
versions, and the numbers of these steps. A ``blind`` run computes no gradients at all: it goes past what
autograd refuses, and shows the values of losses. In a ``numbered`` run random draws are told apart by
numbers, and may be given others, the ``numbers`` by kind (see ``draws.py``). ``fake`` computes nothing (see
``dataless.py``): there are shapes, hashes and errors, and no values. Only a ``thorough`` run has hashes, and
the bytes that graphs hold. With ``updates`` more is recorded: the weights after each step and in the end,
parameters that no optimizer owns, settings of modules.

It writes ``events.jsonl``, one event a line and flushed, so that a process that is killed leaves
what it had seen, and ``values.bin``, float64 values that events point into. What is watched runs
unchanged: hooks read, they draw no random numbers and they swallow no exception. When a budget
is spent the process exits on the spot, which no ``except:`` of the script can prevent.

The files are opened before the process confines itself, and the user's code may write to the folder
``scratch`` within ``folder`` only: it cannot put anything else in their place. What it writes elsewhere
goes there, and is found again (see ``overlay.py``).
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import functools
import gc
import hashlib
import importlib.machinery
import importlib.util
import inspect
import itertools
import json
import linecache
import math
import os
import pathlib
import random
import signal
import socket
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Callable, Collection
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

HERE = os.path.dirname(os.path.abspath(__file__))
# The folder of this file holds modules (`runner`, `recording`) whose names a script may use too.
STANDINS = os.path.join(HERE, "standins")
sys.dont_write_bytecode = True
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != HERE]


def companion(name: str) -> Any:
    """A module that stands beside this file, loaded by its path, for that folder is on no import path."""
    if "_gradfix_" + name in sys.modules:
        return sys.modules["_gradfix_" + name]
    spec = importlib.util.spec_from_file_location("_gradfix_" + name, os.path.join(HERE, name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sandbox = companion("sandbox")
clock = companion("clock")
overlay = companion("overlay")
coverage = companion("coverage")

EXACT = 10_000
"""Tensors up to this many elements are stored whole, larger ones as a sketch."""
SKETCH = 16
"""Numbers in a sketch: projections on fixed random signs, whose differences estimate a norm."""
ROW = 4096
"""Elements in a row of a sketch: a sign for each row and one for each place in it."""
SOON = 0.05
"""Seconds until a run that waited for a processor is asked again whether its time is over, at least."""
ROWS = 64
"""Rows that are measured at a time: as float64 they fit a processor's cache."""
GRAPH_NODES = 200_000
BY_HAND = -1
"""Stands among the backward calls that fed a gradient: something else assigned it."""

NOWHERE: dict[str, Any] = {"script": None, "inner": None, "tensor": False}
"""The place of what the user's code did not cause."""

KINDS = (
    ("E1", "backward through the graph a second time"),
    ("E2", "modified by an inplace operation"),
    ("E3", "does not require grad and does not have a grad_fn"),
    ("E3", "One of the differentiated Tensors does not require grad"),
    ("E4", "leaf Variable that requires grad"),
    ("E5", "is being modified inplace"),
)


def kind_of(error: BaseException) -> str:
    """Which of autograd's own errors this is, or ``other``."""
    if isinstance(error, RuntimeError):
        for kind, text in KINDS:
            if text in str(error):
                return kind
    return "other"


@functools.lru_cache(None)
def provenance() -> Any:
    """The module that hashes how tensors came about; it imports torch."""
    return companion("provenance")


@functools.lru_cache(None)
def effects() -> Any:
    """The module that looks at what a training step does beside gradients; it imports torch."""
    return companion("effects")


@functools.lru_cache(None)
def traversal() -> Any:
    """The module that takes the graphs of backward calls apart; it imports torch."""
    return companion("traversal")


@functools.lru_cache(None)
def dataless() -> Any:
    """The module for runs that compute nothing; it imports torch."""
    return companion("dataless")


@functools.lru_cache(None)
def rounding() -> Any:
    """The module for runs that round otherwise; it imports torch."""
    return companion("rounding")


@functools.lru_cache(None)
def draws() -> Any:
    """The module for runs whose random draws are numbered; it imports torch."""
    return companion("draws")


class Slot:
    """A parameter of an optimizer, and the backward calls whose gradients it holds."""

    def __init__(self, tensor: torch.Tensor) -> None:
        # Holding the tensors keeps their identities from being given to others.
        self.tensor = tensor
        self.gradient = tensor.grad
        self.was_zero = False
        self.feeds: list[int] = [] if tensor.grad is None else [BY_HAND]
        self.terms = 0.0
        """In a run that rounds otherwise: what rounding may leave of the sum, if that is zero."""

    def refresh(self) -> None:
        """Notice what happened to the gradient since the last look: cleared, zeroed, assigned."""
        gradient = self.tensor.grad
        if gradient is None:
            self.feeds = []
        elif gradient is not self.gradient:
            self.feeds = [BY_HAND] if nonzero(gradient) else []
            self.was_zero = False
        elif self.feeds and not self.was_zero and not nonzero(gradient):
            self.feeds = []
        if not self.feeds:
            self.terms = 0.0
        self.gradient = gradient

    def fed(self, by: int) -> None:
        """Note that the backward call ``by`` has accumulated into the gradient."""
        self.gradient = self.tensor.grad
        # A backward may rightly contribute zeros; only zeros that appear later mean "cleared".
        self.was_zero = self.gradient is not None and not nonzero(self.gradient)
        self.feeds.append(by)


def nonzero(tensor: torch.Tensor) -> bool:
    """Whether any element differs from zero (or may, if there are no values)."""
    if type(tensor).__name__ == "FakeTensor":
        return not provenance().nothing_but_zeros(tensor)
    flat = tensor.detach()
    if flat.is_sparse:
        flat = flat.coalesce().values()
    # Of most tensors the first row says it.
    return bool((flat[:1] if flat.dim() else flat).any() or flat.any())


def memory(flat: torch.Tensor) -> Any:
    """The bytes of a contiguous tensor: a view, for large ones are not to be copied once more."""
    size = flat.numel() * flat.element_size()
    # Not by the tensor's own method: whoever asks that is taken for one who may write there.
    return (ctypes.c_char * size).from_address(provenance().address_of(flat)) if size else b""


class Recorder:
    """Watches one run and writes its events."""

    def __init__(self, job: dict[str, Any], events: int, values: int) -> None:
        self.job = job
        self.path: str = job["path"]
        self.root: str = os.path.join(job["root"], "")
        self.limits: dict[str, Any] = job["limits"]
        self.pid = os.getpid()
        self.overlay: Any = None
        self.lock = threading.RLock()
        self.clock = clock.Clock()
        self.events = os.fdopen(events, "w", encoding="utf-8")
        self.values = os.fdopen(values, "wb")
        self.offset = 0
        self.writing = 0
        self.overdue: Any = None
        """What ends the run as soon as what is being written is whole."""
        self.known: dict[str, list[Any]] = {}
        self.signs: dict[int, torch.Tensor] = {}
        self.optimizers: list[Any] = []
        self.slots: dict[int, Slot] = {}
        self.leaves: dict[int, tuple[str, torch.Tensor]] = {}
        self.projects: dict[str, bool] = {}
        self.backwards = self.steps = self.errors = 0
        self.reached: set[tuple[int, ...]] = set()
        """The watched pieces that have been executed."""
        self.dithered = 0
        """How often weights were moved by as little as possible."""
        self.rounding: Any = rounding().Rounding(job["dither"]) if job["dither"] else None
        self.coarse = 0.0
        """What numbers of the type may differ by in which autocast has computed, relative to their size."""
        self.turns: dict[int, int] = {}
        """In a run that only scouts: how many steps each optimizer has taken, by identity."""
        self.idling = False
        """Whether steps without gradients, before the first backward call, are no longer written."""
        self.settings: dict[int, str] = {}
        self.clips: dict[int, list[tuple[str, float]]] = {}
        """By optimizer: how its gradients were clipped since its last step, and by what factor."""
        self.depth = threading.local()
        self.provenance = provenance().Provenance(job["fake"])
        self.effects = effects().Effects(provenance())
        self.traversals = traversal().Traversals(self.effects.saves)
        self.corrections: dict[int, tuple[bool, set[tuple[int, int]]]] = {
            call: (cut, {(index, position) for index, position in dropped})
            for call, cut, dropped in job["corrections"]
        }
        """By backward call: whether what it takes for constants is cut off, and for whom it gives nothing."""
        self.draws: Any = None
        if job["numbered"]:
            self.draws = draws().Numbered(provenance(), job["seed"], dict(job["numbers"]))

    # -- writing ---------------------------------------------------------------------------

    def emit(self, event: str, **fields: Any) -> None:
        """Write one event, after the values that it points into."""
        line = json.dumps({"event": event, **fields}) + "\n"
        with self.undivided():
            self.values.flush()
            self.events.write(line)
            self.events.flush()

    @contextlib.contextmanager
    def undivided(self) -> Any:
        """Around a write: a signal that ends the run is answered after it; no file can be written within."""
        self.writing += 1
        try:
            yield
        finally:
            self.writing -= 1
            if self.overdue is not None and not self.writing:
                leave, self.overdue = self.overdue, None
                leave()

    def interrupt(self, leave: Any) -> None:
        """Leave now, or once what is being written is whole."""
        if self.writing:
            self.overdue = leave
        else:
            leave()

    def finish(self, how: str, raised: int | None = None) -> None:
        """Write the last event and leave the process at once."""
        self.lock.acquire()
        # A signal may have come in the middle of describing something: nothing is described then.
        calm = how in ("finished", "error")
        with self.bookkeeping():
            known = self.leaves.values() if calm else ()
            leaves = {name: self.describe(leaf.grad) for name, leaf in known}
            held = {name: self.describe(leaf) for name, leaf in known}
            watched = self.optimizers if calm and self.job["updates"] else []
            weights = [self.weights(optimizer) for optimizer in watched]
            ended = calm or how in ("steps", "backwards")
            graphs = self.traversals.graphs(references=True) if ended else None
        seconds = self.clock.elapsed()
        self.emit(
            "end",
            how=how,
            raised=raised,
            leaves=leaves,
            held=held,
            weights=weights,
            graphs=graphs,
            seconds=seconds,
        )
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)

    @contextlib.contextmanager
    def bookkeeping(self) -> Any:
        """Around the recorder's own work: its failure ends the run, and is never taken for the script's."""
        from torch.utils._python_dispatch import _disable_current_modes

        try:
            with _disable_current_modes():
                yield
        except Exception:
            self.emit("trouble", message=traceback.format_exc(limit=-3))
            self.finish("trouble")

    def describe(self, tensor: torch.Tensor | None) -> list[Any] | None:
        """``[shape, type, digest, largest, norm, finite, offset, sketch]`` of a tensor.

        ``largest`` is the largest magnitude. Either ``offset`` points at all elements in the
        values file or ``sketch`` holds projections.
        """
        import torch

        if tensor is None:
            return None
        if self.job["fake"]:
            how = self.provenance.of(tensor) or "unknown"
            extent = repr(math.nan if nonzero(tensor) else 0.0)
            return [list(tensor.shape), str(tensor.dtype), how, extent, extent, True, None, None]
        with torch.no_grad():
            plain = tensor.detach()
            if plain.layout != torch.strided:
                plain = plain.to_dense()
            if plain.is_complex():
                plain = torch.view_as_real(plain)
            flat = plain.to("cpu").resolve_neg().reshape(-1).contiguous()
            size = flat.numel()
            shape = list(plain.shape)
            key = repr((shape, flat.dtype)).encode()[:64]
            digest = hashlib.blake2b(memory(flat), digest_size=16, key=key).hexdigest()
            if digest in self.known:
                return self.known[digest]
            offset = sketch = None
            with torch.autocast("cpu", enabled=False):
                if size <= EXACT:
                    wide = flat.to(torch.float64)
                    largest = float(torch.linalg.vector_norm(wide, math.inf)) if size else 0.0
                    norm = float(torch.linalg.vector_norm(wide))
                    offset = self.offset
                    with self.undivided():
                        self.values.write(memory(wide))
                    self.offset += size * 8
                else:
                    largest, norm, sketch = self.measure(flat)
        finite = math.isfinite(largest)
        entry = [shape, str(tensor.dtype), digest, repr(largest), repr(norm), finite, offset, sketch]
        self.known[digest] = entry
        return entry

    def measure(self, flat: torch.Tensor) -> tuple[float, float, list[str]]:
        """Largest magnitude, Euclidean norm and sketch of a large tensor.

        The sketch is projections on signs that are the same in every run: linear, so they may be
        subtracted. Everything is computed in float64, a few rows at a time: a copy of a large
        tensor would cost more than the arithmetic.
        """
        import torch

        rows = -(-flat.numel() // ROW)
        drawn = self.signs.get(rows)
        if drawn is None:
            # Its own generator: the script's random numbers are not ours to draw.
            generator = torch.Generator(device="cpu").manual_seed(rows)
            signs = torch.randint(
                0, 2, (SKETCH, rows + ROW), generator=generator, dtype=torch.int8, device="cpu"
            )
            drawn = signs.t().contiguous().to(torch.float64) * 2 - 1
            self.signs[rows] = drawn
        along, across = drawn[:rows], drawn[rows:]
        largest = squares = 0.0
        projections = torch.zeros(SKETCH, dtype=torch.float64, device="cpu")
        room = torch.empty(min(rows, ROWS) * ROW, dtype=torch.float64, device="cpu")
        for first in range(0, rows, ROWS):
            part = flat[first * ROW : (first + ROWS) * ROW]
            wide = room[: len(part)].copy_(part)
            low, high = torch.aminmax(wide)
            magnitude = float(torch.maximum(-low, high))
            # Written so that a magnitude that is not a number stays the largest.
            largest = largest if magnitude <= largest or math.isnan(largest) else magnitude
            squares += float(wide @ wide)
            whole = len(wide) // ROW
            folded = wide[: whole * ROW].view(whole, ROW) @ across
            projections += (folded * along[first : first + whole]).sum(0)
            rest = wide[whole * ROW :]
            if len(rest):
                projections += (rest @ across[: len(rest)]) * along[first + whole]
        return largest, math.sqrt(squares), [repr(value) for value in projections.tolist()]

    def unable(self, why: str) -> None:
        """End a run that computes nothing where it would need values."""
        self.emit("trouble", message=why)
        self.finish("values")

    def refused(self, error: BaseException) -> None:
        """Notice that an operation needs values."""
        if type(error).__name__ in dataless().ENDS:
            self.unable(f"an operation needs values that a run without data has not ({error})")

    # -- places ----------------------------------------------------------------------------

    def in_project(self, filename: str) -> bool:
        """Whether a frame's file is the user's own code."""
        known = self.projects.get(filename)
        if known is None:
            known = self.projects[filename] = self.own(filename)
        return known

    def own(self, filename: str) -> bool:
        """Whether a file lies in the project and is not installed there."""
        if filename[:1] == "<":  # Made at run time, or a part of the interpreter.
            return False
        try:
            path = os.path.abspath(filename)
        except OSError:  # A relative name, and the working folder is out of reach.
            return False
        installed = path.startswith((os.path.join(sys.prefix, ""), HERE)) or "site-packages" in path
        return path.startswith(self.root) and not installed

    def place(self, frames: list[tuple[types.FrameType, int, int]]) -> dict[str, Any]:
        """Where in the user's code something happens, from frames given innermost first.

        ``script`` is the innermost position in the script, ``inner`` the innermost one in the
        project where that is another file; ``tensor`` says that the call there was
        ``Tensor.backward`` itself, so that its receiver is what is differentiated.
        """
        inner: tuple[str, int] | None = None
        below: types.FrameType | None = None
        tensor = False
        position: list[Any] | None = None
        for frame, instruction, line in frames:
            name = frame.f_code.co_filename
            if name == self.path or self.in_project(name):
                if inner is None:
                    inner = (name, line)
                    called = below.f_code if below is not None else None
                    tensor = called is not None and called.co_name == "backward"
                    tensor = tensor and os.path.basename(called.co_filename) == "_tensor.py"  # type: ignore[union-attr]
                if name == self.path:
                    position = [line, None, None, None]
                    if hasattr(frame.f_code, "co_positions"):
                        spans = frame.f_code.co_positions()
                        position = [line, *next(itertools.islice(spans, instruction // 2, None))[1:]]
                    break
            below = frame
        elsewhere = None
        if inner is not None and inner[0] != self.path:
            elsewhere = {"file": os.path.relpath(inner[0], self.root), "line": inner[1]}
        return {"script": position, "inner": elsewhere, "tensor": tensor}

    def here(self) -> dict[str, Any]:
        """The place from which the hook that asks was reached."""
        frames = []
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.append((frame, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        return self.place(frames)

    def names(self) -> dict[int, str]:
        """What the user's code that is running calls its tensors, by identity."""
        import torch

        found: dict[int, str] = {}

        def add(name: str, value: object, deep: bool) -> None:
            if isinstance(value, torch.nn.Module):
                found.setdefault(id(value), name)
                for inner, parameter in value.named_parameters():
                    found.setdefault(id(parameter), name + "." + inner)
            elif isinstance(value, torch.Tensor):
                found.setdefault(id(value), name)
            elif deep and isinstance(value, (list, tuple)):
                for index, item in enumerate(value[:100]):
                    add(name + "[" + str(index) + "]", item, False)
            elif deep and isinstance(value, dict):
                for key, item in list(value.items())[:100]:
                    add(name + "[" + repr(key) + "]", item, False)
            elif deep and name == "self":
                for key, item in list(getattr(value, "__dict__", {}).items()):
                    add("self." + key, item, False)

        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self.path or self.in_project(name):
                for space in (frame.f_locals, frame.f_globals):
                    for key, value in list(space.items()):
                        if not key.startswith("__"):
                            add(key, value, True)
            frame = frame.f_back
        return found

    # -- what is watched -------------------------------------------------------------------

    def watching(self) -> bool:
        """Not in processes that the script forks (data loaders), nor in calls within calls."""
        return os.getpid() == self.pid and not getattr(self.depth, "inside", False)

    @contextlib.contextmanager
    def inside(self) -> Any:
        """Marks this thread: what autograd calls meanwhile is part of one call of the user."""
        self.depth.inside = True
        try:
            yield
        finally:
            self.depth.inside = False

    def parameters(self) -> list[tuple[int, int, Slot]]:
        """Every owned parameter: its optimizer, its place in it, and its slot."""
        found = []
        for index, optimizer in enumerate(self.optimizers):
            tensors = (tensor for group in optimizer.param_groups for tensor in group["params"])
            for position, tensor in enumerate(tensors):
                slot = self.slots.get(id(tensor))
                if slot is None:
                    slot = self.slots[id(tensor)] = Slot(tensor)
                found.append((index, position, slot))
        return found

    def constructed(self, optimizer: Any, at: dict[str, Any]) -> int:
        """Register an optimizer; its index counts constructions."""
        import torch

        self.optimizers.append(optimizer)
        self.dither(optimizer)
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        if self.draws:
            self.draws.begun = True
            self.draws.settle(tensors)
        names = self.names()
        self.emit(
            "optimizer",
            kind=type(optimizer).__name__,
            at=at,
            parameters=[names.get(id(tensor), "") for tensor in tensors],
            shapes=[[] if torch.nn.parameter.is_lazy(one) else list(one.shape) for one in tensors],
            settings=settings_of(optimizer),
        )
        return len(self.optimizers) - 1

    def dither(self, optimizer: Any) -> None:
        """Move the weights of an optimizer by as little as their type can tell, if the job asks for it."""
        import torch

        if not self.job["dither"]:
            return
        self.dithered += 1
        generator = torch.Generator().manual_seed(self.job["dither"] << 32 | self.dithered)
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        with torch.no_grad():
            for tensor in tensors:
                if tensor.is_floating_point() and not torch.nn.parameter.is_lazy(tensor):
                    signs = torch.randint(0, 2, tensor.shape, generator=generator) * 2 - 1
                    least = max(torch.finfo(tensor.dtype).eps, self.coarse)
                    factor = 1 + least * signs.to(tensor.device, tensor.dtype)
                    tensor.data.mul_(factor)

    def cast(self, to: torch.dtype | None) -> None:
        """Autocast is about to compute in another type, which rounds more."""
        import torch

        eps = torch.finfo(to).eps / 4 if to is not None and to.is_floating_point else 0.0
        if self.job["dither"] and eps > self.coarse:
            self.coarse = eps
            for optimizer in self.optimizers:
                self.dither(optimizer)

    def failed(self, error: BaseException, during: str, at: dict[str, Any]) -> int:
        """Record an exception once, however often it is seen on its way out."""
        marked: int | None = getattr(error, "_gradfix_event", None)
        if marked is not None:
            return marked
        self.emit(
            "error",
            kind=kind_of(error),
            type=type(error).__name__,
            message=str(error)[:2000],
            missing=str(getattr(error, "filename", None) or getattr(error, "name", None) or ""),
            during=during,
            at=at,
        )
        self.errors += 1
        self.scouted()
        with contextlib.suppress(Exception):
            error._gradfix_event = self.errors - 1  # type: ignore[attr-defined]
        return self.errors - 1

    def reachable_leaves(self, roots: list[torch.Tensor]) -> None:
        """Learn the leaves that a backward from ``roots`` may reach, and what they are called."""
        fresh: list[torch.Tensor] = []
        seen: set[Any] = set()
        waiting: list[Any] = []
        for root in roots:
            if root.grad_fn is not None:
                waiting.append(root.grad_fn)
            elif root.requires_grad:
                fresh.append(root)
        while waiting and len(seen) < GRAPH_NODES:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            variable = getattr(node, "variable", None)
            if variable is not None:
                fresh.append(variable)
            waiting.extend(reversed([following for following, _ in node.next_functions if following]))
        fresh = [leaf for leaf in fresh if id(leaf) not in self.leaves]
        if not fresh:
            return
        names = self.names()
        taken = {name for name, _ in self.leaves.values()}
        for leaf in fresh:
            name = names.get(id(leaf)) or "leaf"
            number = 1
            while name + ("" if number == 1 else " #" + str(number)) in taken:
                number += 1
            name += "" if number == 1 else " #" + str(number)
            taken.add(name)
            self.leaves[id(leaf)] = (name, leaf)

    def backward(self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call of ``torch.autograd.backward`` from the user's code."""
        import torch

        with self.lock:
            if self.idling:
                self.idling, self.steps = False, 0
            if self.steps >= self.limits["steps"]:
                self.finish("steps")
            # Where nothing has been handed to an optimizer, parameters are moved by hand after each call.
            if self.backwards >= self.limits["backwards" if self.optimizers else "steps"]:
                self.finish("backwards")
        self.provenance.leave_if_lost()
        with self.bookkeeping(), torch.no_grad():
            at = self.here()
            first = args[0] if args else kwargs.get("tensors")
            listed = [first] if isinstance(first, torch.Tensor) else list(first or ())
            roots = [root for root in listed if isinstance(root, torch.Tensor)]
            value = self.describe(roots[0]) if len(roots) == 1 else None
            owned = self.parameters()
            watched = {id(slot.tensor): slot for _, _, slot in owned}
            for slot in watched.values():
                slot.refresh()
            bare = not self.optimizers
            if bare:
                self.reachable_leaves(roots)
            self.look(watched)
            saved = self.effects.saved(roots) if self.job["thorough"] else None
            seeds = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
            through = None
            cut, dropped = self.corrections.get(self.backwards, (False, set()))
            if not self.job["blind"]:
                through = self.traversals.look(roots, self.owners(owned), seeded=seeds is not None)
            states = {key: state(slot.tensor) for key, slot in watched.items()}
            leaf_states = {key: state(leaf) for key, (_, leaf) in self.leaves.items()} if bare else {}
            weights = {name: self.describe(leaf) for name, leaf in self.leaves.values()} if bare else {}
            copies: dict[int, torch.Tensor | None] = {}
            if self.job["still"] or dropped:
                for key, slot in watched.items():
                    copies[key] = None if slot.tensor.grad is None else slot.tensor.grad.detach().clone()
        retain = args[2] if len(args) > 2 else kwargs.get("retain_graph")
        if retain is None:
            retain = args[3] if len(args) > 3 else kwargs.get("create_graph")
        failure: Exception | None = None
        began = perf_counter()
        try:
            with contextlib.ExitStack() as around:
                around.enter_context(self.inside())
                if cut:
                    around.enter_context(self.traversals.cut_off())
                if self.rounding is not None:
                    around.enter_context(self.rounding.within(roots))
                result = None if self.job["blind"] else original(*args, **kwargs)
        except Exception as error:
            failure = error
        seconds = perf_counter() - began
        with self.bookkeeping(), torch.no_grad():
            spared = {id(slot.tensor) for index, position, slot in owned if (index, position) in dropped}
            for key in spared:
                restore(watched[key].tensor, states[key][0], copies[key])
            changed = {
                key
                for key, slot in watched.items()
                if key not in spared and not same(state(slot.tensor), states[key])
            }
            for key in changed:
                watched[key].fed(BY_HAND if failure else self.backwards)
                if self.rounding is not None:
                    watched[key].terms += self.rounding.terms.get(key, 0.0)
        if failure is not None:
            self.failed(failure, "backward", at)
            raise failure
        with self.bookkeeping(), torch.no_grad():
            shares = []
            for index, position, slot in owned if self.job["still"] else ():
                if id(slot.tensor) in changed and slot.tensor.grad is not None:
                    earlier = copies[id(slot.tensor)]
                    now = slot.tensor.grad.detach()
                    shares.append([index, position, self.describe(now if earlier is None else now - earlier)])
            self.emit(
                "backward",
                at=at,
                value=value,
                retain=bool(retain),
                saved=saved,
                seconds=seconds,
                through=through,
                reached=[[index, position] for index, position, slot in owned if id(slot.tensor) in changed],
                shares=shares,
                terms=[
                    [index, position, self.rounding.terms.get(id(slot.tensor), 0.0)]
                    for index, position, slot in owned
                    if self.rounding is not None and self.job["still"]
                ],
                leaves={
                    name: self.describe(leaf.grad)
                    for key, (name, leaf) in self.leaves.items()
                    if bare and not same(state(leaf), leaf_states.get(key, (None, -1)))
                },
                weights=weights,
            )
            self.traversals.gone(self.backwards)
        self.backwards += 1
        return result

    @staticmethod
    def owners(owned: list[tuple[int, int, Slot]]) -> dict[int, list[tuple[int, int]]]:
        """By the identity of a parameter, its optimizers and its places in them."""
        found: dict[int, list[tuple[int, int]]] = {}
        for index, position, slot in owned:
            found.setdefault(id(slot.tensor), []).append((index, position))
        return found

    def reach(self, *piece: int) -> None:
        """A watched piece of the program is about to be executed."""
        if piece not in self.reached and os.getpid() == self.pid:
            self.reached.add(piece)
            self.emit("reached", piece=piece)
            self.scouted()

    def scouted(self) -> None:
        """In a run that only scouts: something was come to that is looked for; note after how much."""
        if self.job["scout"]:
            self.emit("scouted", steps=self.steps, backwards=self.backwards)
            everyone = all(self.turns.get(id(one), 0) >= ENOUGH for one in self.optimizers)
            if self.job["scout"] == "pieces" and everyone and len(self.reached) == len(self.job["watched"]):
                self.finish("steps")

    def pass_by(self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A backward call in a run that only scouts."""
        if max(self.steps, self.backwards) >= self.limits["steps"]:
            self.finish("steps")
        self.backwards += 1
        try:
            with self.inside():
                return original(*args, **kwargs)
        except Exception as error:
            self.failed(error, "backward", self.here())
            raise

    def passed(self, optimizer: Any) -> None:
        """An optimizer has stepped in such a run."""
        if self.steps >= self.limits["steps"]:
            self.finish("steps")
        self.steps += 1
        self.turns[id(optimizer)] = self.turns.get(id(optimizer), 0) + 1
        if self.turns[id(optimizer)] <= ENOUGH:
            self.scouted()

    def look(self, watched: dict[int, Slot]) -> None:
        """Find what holds the parameters that optimizers own; to compare repairs, what is like them, too."""
        describe = self.describe if self.job["updates"] else None
        self.effects.look((slot.tensor for slot in watched.values()), self.names, describe)

    def step(self, optimizer: Any, at: dict[str, Any]) -> None:
        """An optimizer is about to consume the gradients that its parameters hold."""
        with self.lock:
            if self.steps >= self.limits["steps"]:
                # Where nothing was differentiated yet, a script only looks at what a schedule does.
                self.idling = not self.backwards and not any(
                    one.grad is not None for group in optimizer.param_groups for one in group["params"]
                )
                if self.idling:
                    return
                self.finish("steps")
        with self.bookkeeping():
            owners = [index for index, known in enumerate(self.optimizers) if known is optimizer]
            owner = owners[0] if owners else self.constructed(optimizer, NOWHERE)
            rows = []
            terms = []
            owned = self.parameters()
            for index, _, slot in owned:
                if index == owner:
                    slot.refresh()
                    tensor = slot.tensor
                    hashes = [self.provenance.of(tensor.grad), self.provenance.of(tensor)]
                    rows.append(
                        [self.describe(tensor.grad), self.describe(tensor), list(slot.feeds), *hashes]
                    )
                    terms.append(slot.terms)
            self.look({id(slot.tensor): slot for _, _, slot in owned})
            around: dict[str, Any] = {
                "random": self.effects.draws(),
                "buffers": self.effects.buffers(self.describe, self.provenance.of),
                "modules": self.effects.settings(),
            }
            if self.job["updates"]:
                around["others"] = self.effects.others(self.describe, self.provenance.of)
                around["clips"] = self.clips.pop(owner, [])
            if self.rounding is not None:
                around["terms"] = terms
            if self.draws:
                around["drawn"] = self.draws.counts()
                around["draws"] = self.draws.of(
                    slot.tensor.grad for index, _, slot in owned if index == owner
                )
            settings = settings_of(optimizer)
            if settings != self.settings.get(owner):
                # Whatever changes them between two steps: a schedule, or a hand.
                self.settings[owner] = around["settings"] = settings
            around["graphs"] = self.traversals.graphs()
            self.emit("step", optimizer=owner, at=at, parameters=rows, **around)
        self.steps += 1

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        with self.bookkeeping():
            owners = [index for index, known in enumerate(self.optimizers) if known is optimizer]
            self.emit("stepped", optimizer=owners[0], weights=self.weights(optimizer))
            if self.draws:
                self.draws.settle(one for group in optimizer.param_groups for one in group["params"])

    def clipped(self, parameters: list[Any], how: dict[str, Any], norm: torch.Tensor | None) -> None:
        """Gradients have been clipped; ``norm`` is what theirs was together, if that was the measure."""
        measures = ("max_norm", "norm_type", "clip_value")
        text = ", ".join(f"{key}={float(value):g}" for key, value in how.items() if key in measures)
        with self.bookkeeping():
            clipped = {id(parameter) for parameter in parameters}
            for index, optimizer in enumerate(self.optimizers):
                own = [one for group in optimizer.param_groups for one in group["params"]]
                given = {id(one) for one in own if one.grad is not None}
                if given & clipped:
                    factor = 1.0
                    if norm is not None:
                        factor = max(0.0, min(1.0, how["max_norm"] / (float(norm) + 1e-6)))
                    self.clips.setdefault(index, []).append((text, factor if given <= clipped else 1.0))

    def weights(self, optimizer: Any) -> list[Any]:
        """What an optimizer's parameters hold now."""
        return [self.describe(tensor) for group in optimizer.param_groups for tensor in group["params"]]

    # -- hooks -----------------------------------------------------------------------------

    def install(self) -> None:
        """Put the watch on torch: backward calls, optimizers, their steps."""
        import torch
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        recorder, keep = self, self.job["keep"]
        holding = Holding(self)
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
                how = recorder.pass_by if recorder.job["scout"] else recorder.backward
                return how(real_backward, args, kwargs)
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
                recorder.failed(error, "grad", recorder.here())
                raise

        @functools.wraps(real_init)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            real_init(self, *args, **kwargs)
            if recorder.watching():
                with recorder.bookkeeping():
                    recorder.constructed(self, recorder.here())

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
            at = recorder.here()
            holding.begin(optimizer)
            closure = args[1] if len(args) > 1 else kwargs.get("closure")
            if closure is None:
                recorder.step(optimizer, at)
                return None

            # With a closure the gradients come to be within the step: once per evaluation.
            def evaluate() -> Any:
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

        if self.job["dither"]:
            torch.autocast.__enter__ = enter  # type: ignore[method-assign]
        if self.job["blind"]:
            torch.set_grad_enabled(False)
            torch._C._set_grad_enabled = lambda enabled: None
        self.effects.install()
        traversal().watch_draws()
        torch.autograd.backward = backward
        torch.autograd.grad = grad
        torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]
        if self.job["updates"]:
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


def settings_of(optimizer: Any) -> str:
    """The options of an optimizer's parameter groups, as text that is equal for equal options."""
    import torch

    plain = (bool, int, float, str, tuple, type(None))

    def text(key: str, value: Any) -> str | None:
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            # Learning rates that compiled steps read: 0.1 is none of float32's numbers.
            value = value.item()
            value = float(f"{value:.7g}") if isinstance(value, float) else value
        return f"{key}={value!r}" if isinstance(value, plain) else None

    # What schedulers note there of where they began is nothing that steps read.
    groups = [
        [text(key, group[key]) for key in sorted(group) if key != "initial_lr"]
        for group in optimizer.param_groups
    ]
    return "; ".join(", ".join(one for one in group if one is not None) for group in groups)


class Holding:
    """Puts weights back after steps, as the job of a recorder asks."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.alone: int | None = recorder.job["alone"]
        self.moves: list[list[Any]] = recorder.job["moves"]
        self.active = recorder.job["still"] or self.alone is not None or bool(self.moves)
        self.stepped: dict[int, int] = {}
        """By optimizer: how many steps it has taken."""
        self.before: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        """By the identity of an optimizer that steps: its parameters, and what they held."""

    def begin(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        if self.active:
            tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
            self.before[id(optimizer)] = [(tensor, tensor.detach().clone()) for tensor in tensors]

    def end(self, optimizer: Any) -> None:
        """It has stepped."""
        import torch

        held = self.before.pop(id(optimizer), [])
        if not held or self.recorder.idling:
            return
        number = self.recorder.optimizers.index(optimizer)
        turn = self.stepped[number] = self.stepped.get(number, 0) + 1
        if number == self.alone:
            return
        if number < len(self.moves) and turn in self.moves[number][1]:
            # What was kept of earlier weights is not what the run goes on with.
            name, turns = self.moves[number]
            key = name, turns.index(turn)
            with self.recorder.bookkeeping(), torch.no_grad():
                held = [(one, displaced(value, *key, at)) for at, (one, value) in enumerate(held)]
        for tensor, value in held:
            tensor.data.copy_(value)


DISPLACED = 0.02
"""How far weights are moved away, at most, where a run is to go on with others than before."""


def displaced(value: torch.Tensor, optimizer: int, turn: int, position: int) -> torch.Tensor:
    """Weights that were moved away, in every run alike."""
    import torch

    if not value.is_floating_point():
        return value
    generator = torch.Generator().manual_seed((turn << 8 | optimizer) << 20 | position)
    away = torch.rand(value.shape, generator=generator) * 2 - 1
    return value + DISPLACED * away.to(value.device, value.dtype)


def state(tensor: torch.Tensor) -> tuple[torch.Tensor | None, int]:
    """What tells whether a backward call has accumulated into a tensor's gradient."""
    gradient = tensor.grad
    return gradient, -1 if gradient is None else gradient._version


def restore(tensor: torch.Tensor, gradient: torch.Tensor | None, held: torch.Tensor | None) -> None:
    """Give a tensor the gradient back that it had, and that what it held."""
    tensor.grad = gradient
    if gradient is not None and held is not None:
        gradient.copy_(held)


def same(one: tuple[Any, int], other: tuple[Any, int]) -> bool:
    """Whether two looks at a gradient saw the same tensor at the same version."""
    return one[0] is other[0] and one[1] == other[1]


# -- the surroundings of a run -------------------------------------------------------------

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

    import torch

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


DESCRIPTORS = 1024


def limit(limits: dict[str, Any]) -> None:
    """Bound memory, processor time, open files and the size of files, where the system can."""
    bound(limits)
    with contextlib.suppress(ImportError, OSError), open("/proc/self/statm") as status:
        import resource

        # Torch's libraries alone map gigabytes that are never touched, so the bound is on growth.
        lower("RLIMIT_AS", int(status.read().split()[0]) * resource.getpagesize() + limits["memory"])


def bound(limits: dict[str, Any], more: int = 0) -> None:
    """Bound all that but memory; a run may take so many seconds ``more``."""
    lower("RLIMIT_CORE", 0)
    lower("RLIMIT_FSIZE", limits["file"])
    lower("RLIMIT_NOFILE", DESCRIPTORS)
    # For whatever should outlive the server, which ends runs by the clock.
    lower("RLIMIT_CPU", (int(limits["seconds"]) + more) * (os.cpu_count() or 1) + 10)


def lower(name: str, bound: int) -> None:
    """Lower a limit of this process, where the system has it."""
    with contextlib.suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        kind = getattr(resource, name)
        highest = resource.getrlimit(kind)[1]
        bound = bound if highest == resource.RLIM_INFINITY else min(bound, highest)
        resource.setrlimit(kind, (bound, bound))


def seed_all(seed: int) -> None:
    """Seed every generator, and shift the seeds that the script sets itself.

    Without the shift a script that calls ``manual_seed`` would do the same under every seed. With
    seed 0 it runs as it is written.
    """
    import torch

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


@functools.cache
def installed() -> Any:
    """What this interpreter reads of itself and its packages; the same for all runs."""
    return sandbox.interpreter_files()


class Looking:
    """Looks through projects and folders of data for what runs may read of them."""

    SLOW = 0.1
    """Seconds from which on it is not done again for the next run."""

    def __init__(self) -> None:
        self.known: dict[Any, tuple[Any, float]] = {}
        """What was found, and how long that took."""

    def refresh(self, job: dict[str, Any]) -> None:
        """Look again, where that is quick: there may be new files."""
        if self.known.get(self.key(job), (None, 0.0))[1] < self.SLOW:
            self.known.pop(self.key(job), None)
        self.found(job)

    def found(self, job: dict[str, Any]) -> Any:
        """What this job may read, beside its interpreter."""
        key = self.key(job)
        if key not in self.known:
            began = perf_counter()
            project, data = sandbox.project_files(*key[:2]), sandbox.data_folders(list(key[2]))
            files = sandbox.Readable(project.whole + data.whole, project.listed + data.listed)
            self.known[key] = files, perf_counter() - began
        return self.known[key][0]

    def key(self, job: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
        return job["root"], job["path"], tuple(job["command"]["readable"])


given = Looking()


def scratch_of(job: dict[str, Any]) -> str:
    """The folder that a run may write to."""
    return os.path.join(job["folder"], "scratch")


def confine(
    job: dict[str, Any], channel: socket.socket | None, held: Collection[str] = (), own: Any = None
) -> None:
    """Enter the sandbox that the job names; ``channel`` leads to the supervisor.

    Args:
        held: What the kernel holds of it (see ``sandbox.Level``).
        own: What the interpreter may read of itself, if it is not this one.

    Raises:
        SandboxError: if it is not to be had.
    """
    own, files = own or installed(), given.found(job)
    limits, scratch = job["limits"], scratch_of(job)
    # Within another program's sandbox `/dev/shm` is private already.
    private = job["shared"] and job["level"] == sandbox.LANDLOCK
    box = sandbox.Confinement(
        job["level"],
        # Stand-ins are loaded when a script asks for what they stand for.
        sandbox.Readable([STANDINS, *own.whole, *files.whole], own.listed + files.listed),
        scratch,
        sandbox.Private(limits["memory"], limits["disk"], limits["files"]) if private else None,
        limits["tasks"] if sandbox.TASKS in held else 0,
        sandbox.CGROUP in held,
        job["newest"],
    )
    listener = sandbox.confine(box, supervised=channel is not None)
    if channel is not None:
        sandbox.hand_over(channel, listener, [scratch, sandbox.SHARED_MEMORY] if private else [])


def plain_processes(shared: bool) -> None:
    """Let processes that the script starts do with pipes: in the sandbox there are no sockets.

    Tensors are sent by value, where torch would pass descriptors of shared memory through a socket;
    processes are forked, where newer Pythons have a server for that; and where there is no shared
    memory, not even for locks, data loaders work in the process itself.
    """
    import multiprocessing.context
    from multiprocessing.reduction import ForkingPickler

    import torch

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


def opened(job: dict[str, Any]) -> tuple[int, int]:
    """Open what a run writes its record to; its standard streams lead elsewhere from here on."""
    folder, scratch = job["folder"], scratch_of(job)
    os.makedirs(scratch, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    for name, descriptor in (("stdout.txt", 1), ("stderr.txt", 2)):
        os.dup2(os.open(os.path.join(folder, name), flags, 0o600), descriptor)
    os.dup2(terminal(), 0)
    os.chdir(scratch)
    events, values = (
        os.open(os.path.join(folder, name), flags, 0o600) for name in ("events.jsonl", "values.bin")
    )
    return events, values


def run(
    job: dict[str, Any], channel: socket.socket | None = None, held: Collection[str] = (), group: Any = None
) -> None:
    """Run one job in this process, which ends with it; ``channel`` and ``held`` as in :func:`confine`.

    Args:
        group: The control group that it is to be in, if there is one.
    """
    recorder = Recorder(job, *opened(job))
    limit(job["limits"])
    try:
        if group is not None:
            group.join()
        confine(job, channel, held)
    except Exception as error:
        recorder.emit("trouble", message="the sandbox could not be set up: " + str(error))
        recorder.finish("trouble")
    record(recorder, job)


def trouble(events: int, message: str) -> None:
    """Leave as a run that could not be begun, for this reason."""
    for line in ({"event": "trouble", "message": message}, {"event": "end", "how": "trouble"}):
        os.write(events, json.dumps(line).encode() + b"\n")
    os._exit(0)


class Stranger:
    """An interpreter of which nothing may run outside the sandbox.

    Args:
        executable: Its path.
        prefixes: The folders that it and the interpreter it was made with are installed in.
    """

    def __init__(self, executable: str, prefixes: list[str]) -> None:
        self.executable = executable
        files = sandbox.environment_files(prefixes)
        self.files = sandbox.Readable([HERE, *files.whole], files.listed)

    def run(
        self, job: dict[str, Any], channel: socket.socket, held: Collection[str], group: Any = None
    ) -> None:
        """As :func:`run`: this process is confined, and then becomes that interpreter."""
        events, values = opened(job)
        # It cannot open this any more then: only the folder `scratch` below it is given to it.
        told = os.open(os.path.join(job["folder"], JOB), os.O_RDONLY)
        bound(job["limits"], IMPORTING)
        try:
            if group is not None:
                group.join()
            confine(job, channel, held, self.files)
        except Exception as error:
            trouble(events, "the sandbox could not be set up: " + str(error))
        descriptors = [told, events, values]
        for one in descriptors:
            os.set_inheritable(one, True)
        command = [self.executable, os.path.join(HERE, "probe.py"), "--confined", *map(str, descriptors)]
        try:
            os.execv(self.executable, command)
        except OSError as error:
            trouble(events, "the sandbox does not let " + self.executable + " be started: " + str(error))


JOB = "job.json"
"""The file of a job in its folder."""
IMPORTING = 60
"""Seconds that an interpreter may take to import torch, where each run has one of its own."""


def confined(told: int, events: int, values: int) -> None:
    """Run the job that the descriptor ``told`` leads to, in a process that is confined already."""
    with os.fdopen(told, encoding="utf-8") as file:
        job = json.load(file)
    try:
        warm()
    except Exception as error:
        trouble(events, "torch cannot be imported: " + type(error).__name__ + ": " + str(error))
    for one in (events, values):
        os.set_inheritable(one, False)
    limit(job["limits"])
    record(Recorder(job, events, values), job)


def record(recorder: Recorder, job: dict[str, Any]) -> None:
    """Run a job in a process that is confined, to its end."""
    import torch

    command, scratch = job["command"], scratch_of(job)
    with contextlib.suppress(OSError):
        os.chdir(command["cwd"])
    surround(recorder, job, scratch)
    recorder.emit(
        "start",
        torch=str(torch.__version__),
        python=sys.version.split()[0],
        exact=EXACT,
        sketch=SKETCH,
    )
    recorder.install()
    provenance().install(recorder.provenance)
    begin_clock(recorder, job)
    if job["schema"]:
        with recorder.bookkeeping():
            load_standins().install(recorder, job, recorder.overlay)
    with contextlib.ExitStack() as stack:
        modes(stack, recorder, job)
        setattr(builtins, coverage.MARK, recorder.reach)
        try:
            execute(job)
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                advise(recorder, job, leaving)
                recorder.finish("error", recorder.failed(leaving, "script", where(recorder, leaving)))
        except BaseException as error:
            advise(recorder, job, error)
            recorder.finish("error", recorder.failed(error, "script", where(recorder, error)))
    advise(recorder, job)
    recorder.finish("finished")


ROWS, COLUMNS = 24, 80
"""Of the terminal that a run has as its standard input."""


def terminal() -> int:
    """A terminal of usual size at which nobody types: what is read from it has ended.

    Users start scripts in one, and some ask how wide it is. Where none is to be had it is the null device.
    """
    try:
        import fcntl
        import pty
        import struct
        import termios

        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.write(ours, b"\x04" * 64)
    except (ImportError, OSError):
        return os.open(os.devnull, os.O_RDONLY)
    return theirs


def surround(recorder: Recorder, job: dict[str, Any], scratch: str) -> None:
    """Put around a run what is not the recorder's: its folders, its variables, its seeds, its processes."""
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
        scratch, sandbox.folders_down(job["root"], job["path"]), sandbox.SECRET
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
    import torch

    real = torch.save

    @functools.wraps(real)
    def save(value: object, f: Any, *args: Any, **kwargs: Any) -> None:
        path = overlay.text_of(f)
        real(value, f if path is None else layer.writing(path), *args, **kwargs)

    torch.save = save  # type: ignore[assignment]


def begin_clock(recorder: Recorder, job: dict[str, Any]) -> None:
    """End the run when its time is over, where the system has timers."""
    if not hasattr(signal, "setitimer"):
        return
    seconds = job["limits"]["seconds"]

    def late() -> None:
        if not recorder.errors:
            advise(recorder, job, late=True)
        recorder.finish("seconds")

    def alarm(*_: object) -> None:
        left = seconds - recorder.clock.elapsed()
        if left <= 0:
            recorder.interrupt(late)
        else:
            signal.setitimer(signal.ITIMER_REAL, max(left, SOON))

    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def modes(stack: contextlib.ExitStack, recorder: Recorder, job: dict[str, Any]) -> None:
    """Enter the modes of torch that the job asks for."""
    import torch

    if job["keep"]:
        # What is saved is copied, so no later step can reach it, and hooks skip the version check.
        stack.enter_context(
            torch.autograd.graph.saved_tensors_hooks(recorder.provenance.copied_alike, lambda kept: kept)
        )
    if job["fake"]:
        stack.enter_context(dataless().pretending(recorder.unable))
        recorder.provenance.raised = recorder.refused
    if not job["thorough"]:
        recorder.provenance.lost = "nobody asks for hashes"
    if job["thorough"] or job["fake"]:
        stack.enter_context(recorder.provenance)
    if recorder.draws:
        stack.enter_context(recorder.draws)


def execute(job: dict[str, Any]) -> None:
    """Run what the user's command starts, with the text under test in the place of its file."""
    command, path, source = job["command"], job["path"], job["source"]
    entry, module = command["entry"], command["module"]
    # No time of modification: linecache then keeps these lines, whatever the file on disk says.
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    sys.argv = [entry, *command["args"]]
    imports = [folder for folder in job["imports"] if folder not in sys.path]
    sys.path[:0] = [command["cwd"] if module else os.path.dirname(entry), *imports]
    if imports:
        os.environ["PYTHONPATH"] = os.pathsep.join(job["imports"])
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=entry, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    elsewhere = os.path.realpath(entry) != os.path.realpath(path)
    if elsewhere:
        imported_as(path, source, job["watched"])
    if module:
        # As ``runpy`` does: the packages around it are imported first.
        main.__spec__ = importlib.util.find_spec(module)
        main.__package__ = module if os.path.basename(entry) == "__main__.py" else module.rpartition(".")[0]
    if elsewhere:
        with open(entry, "rb") as file:
            code = compile(file.read(), entry, "exec", dont_inherit=True)
    else:
        code = coverage.compiled(source, entry, job["watched"])
    exec(code, main.__dict__)


def imported_as(path: str, source: str, watched: list[list[int]]) -> None:
    """Let the file at ``path`` be imported with another text."""
    loader = importlib.machinery.SourceFileLoader
    real = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        if os.path.realpath(self.get_filename(fullname)) == os.path.realpath(path):
            return coverage.compiled(source, path, watched)
        return real(self, fullname)

    loader.get_code = get_code  # type: ignore[method-assign]


ENOUGH = 2
"""Steps after which a run lacks nothing any more."""


def advise(
    recorder: Recorder, job: dict[str, Any], error: BaseException | None = None, late: bool = False
) -> None:
    """Record the schema with which the run might get further, if it lacked something.

    A run whose steps are enough, or that autograd has ended, lacks nothing.
    """
    done = recorder.steps if recorder.optimizers else recorder.backwards
    if done >= ENOUGH or (error is not None and kind_of(error) != "other"):
        return
    with recorder.bookkeeping():
        package = load_standins()
        if not job["schema"]:
            package.install(recorder, job, recorder.overlay)
        found = package.advise(error) if error is not None else package.advise_at_end(late)
        if found is not None:
            recorder.emit("schema", text=found)


def load_standins() -> Any:
    """The package of stand-ins beside this file, under a name that no script uses."""
    name = "_gradfix_standins"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(STANDINS, "__init__.py"), submodule_search_locations=[STANDINS]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return package


def where(recorder: Recorder, error: BaseException) -> dict[str, Any]:
    """The place that an exception came from, by its traceback."""
    if isinstance(error, SyntaxError) and error.filename == recorder.path:
        return {"script": [error.lineno, None, None, None], "inner": None, "tensor": False}
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    return recorder.place(frames[::-1])


# -- the server ----------------------------------------------------------------------------


def warm() -> dict[str, Any]:
    """Import what every run needs, once."""
    import torch

    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401
    torch.set_num_threads(1)
    # Before any run is confined to what it may read.
    provenance().prepare()
    overlay.captured()
    effects()
    dataless()
    draws()
    try:
        from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: F401
    except ImportError:
        raise ImportError("torch " + str(torch.__version__) + " is too old (2.0 is needed)") from None
    # The first optimizer of a process makes torch import its compiler, which takes a second.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    first_operations()
    gc.freeze()  # a collection in a forked process would copy all the pages that it shares
    return {"torch": str(torch.__version__), "python": sys.version.split()[0]}


def first_operations() -> None:
    """Let torch do what it does when an operation is first asked for, which each run would do anew.

    No backward: where torch makes threads for it, a forked process could not use them. No FakeTensorMode:
    it asks for accelerators, and then those who are forked may not ask any more.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    with torch.no_grad():
        image = torch.zeros(2, 1, 6, 6)
        hidden = torch.nn.functional.leaky_relu(torch.nn.Conv2d(1, 2, 3)(image))
        image = torch.nn.ConvTranspose2d(2, 1, 3)(torch.nn.BatchNorm2d(2)(hidden))
        score = torch.sigmoid(torch.nn.Linear(36, 1)(image.flatten(1)))
        torch.nn.functional.binary_cross_entropy(torch.cat([score, 1 - score]), torch.ones(4, 1)).mean()
    with _disable_current_modes():
        pass


NICER = 5
"""How much a run stands back for others: above all for its supervisor, which it waits for."""


class Server:
    """Forks a process for each job, a few at a time, and ends those that overrun."""

    GRACE = 3.0

    def __init__(
        self,
        workers: int,
        held: Collection[str] = (),
        groups: Any = None,
        name: str = "",
        stranger: Stranger | None = None,
    ) -> None:
        self.workers = workers
        self.stranger = stranger
        """The interpreter that jobs are run in, if it is another one."""
        self.held = held
        """What the kernel holds of runs (see ``sandbox.Level``)."""
        self.groups = groups
        """Where control groups for runs are made, if anywhere."""
        self.name = name
        """Of this server, for its groups."""
        self.count = 0
        """Runs so far."""
        self.channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self.requests = os.dup(0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self.waiting: list[str] = []
        self.running: dict[int, tuple[str, Any]] = {}
        self.ends: dict[int, int] = {}
        """By process, where the system has it: a descriptor that can be read when the process has ended."""
        self.supervisor = companion("supervisor").Supervisor
        self.equipped = False
        """Whether the stand-ins are loaded."""

    def say(self, **message: Any) -> None:
        """Send one line to the caller."""
        self.channel.write(json.dumps(message) + "\n")
        self.channel.flush()

    def serve(self) -> None:
        """Work until the caller closes the channel; then nothing is left running."""
        import select

        try:
            if self.stranger is None:
                self.say(ready=warm())
                installed()
            else:
                self.say(ready={})
            sandbox.adopt_orphans()
        except Exception as error:
            self.say(fatal=type(error).__name__ + ": " + str(error))
            return
        pending = b""
        try:
            while True:
                asking = [watch.listener for _, watch in self.running.values() if watch.listener is not None]
                wanted = [self.requests, *asking, *self.ends.values()]
                ready, _, _ = select.select(wanted, [], [], 0.01 if self.running else None)
                for _, watch in self.running.values():
                    watch.answer()
                if self.requests in ready:
                    data = os.read(self.requests, 65536)
                    if not data:
                        return
                    *lines, pending = (pending + data).split(b"\n")
                    self.waiting.extend(line.decode() for line in lines)
                self.reap()
                while self.waiting and len(self.running) < self.workers:
                    self.start(self.waiting.pop(0))
        finally:
            for _, watch in list(self.running.values()):
                watch.end()

    def start(self, name: str) -> None:
        """Fork a process for the job in the file ``name``."""
        with open(name, encoding="utf-8") as file:
            job = json.load(file)
        if job["schema"] and not self.equipped and self.stranger is None:
            # Once for all that follow: compiling them takes most of a second, and nothing keeps the result.
            load_standins()
            gc.freeze()
            self.equipped = True
        self.count += 1
        given.refresh(job)
        group = None
        if sandbox.CGROUP in self.held:
            limits, own = job["limits"], self.name + "-" + str(self.count)
            try:
                group = companion("cgroups").Group(self.groups, own, limits["memory"], limits["tasks"])
            except OSError as error:
                self.say(job=name, signal=None, code=None, why="it got no control group: " + str(error))
                return
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                os.nice(NICER)
                close_all_but(theirs.fileno())
                begin = run if self.stranger is None else self.stranger.run
                begin(job, theirs, self.held, group)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(70)
        theirs.close()
        watch = self.supervisor(
            child,
            job["folder"],
            job["limits"],
            self.GRACE + (IMPORTING if self.stranger else 0),
            clock.Clock(child),
            bounded=group is not None or sandbox.TASKS in self.held,
            unlimited=self.stranger is not None,
            cgroup=group,
        )
        watch.connect(ours)
        self.running[child] = (name, watch)
        with contextlib.suppress(AttributeError, OSError):
            self.ends[child] = os.pidfd_open(child)

    def reap(self) -> None:
        """Answer for the processes that have ended; end those that use too much."""
        for child, (name, watch) in list(self.running.items()):
            over = watch.over()
            why = None if over else watch.excess()
            if over or why is not None:
                status = watch.end()  # with what it started and left behind
                del self.running[child]
                if child in self.ends:
                    os.close(self.ends.pop(child))
                if why is not None or status is None:
                    self.say(job=name, signal=None, code=None, why=why)
                else:
                    self.say(job=name, signal=status & 0x7F, code=status >> 8, why=None)


def close_all_but(kept: int) -> None:
    """Close what the server has open, other than its standard streams: no run may speak through it."""
    try:
        opened = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        opened = list(range(DESCRIPTORS))
    for descriptor in opened:
        if descriptor > 2 and descriptor != kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def serve(workers: int, folder: str, held: Collection[str], stranger: Stranger | None = None) -> None:
    """Serve under a guard, which removes ``folder`` if the caller ends before."""
    name = str(os.getpid())
    groups = None
    cgroups = companion("cgroups") if sandbox.CGROUP in held else None
    if cgroups is not None:
        groups = cgroups.place()
        # What asks the manager of the user's groups is no business of a script's.
        for variable in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"):
            os.environ.pop(variable, None)

    def clean(left_alone: bool) -> None:
        if cgroups is not None and groups is not None:
            cgroups.sweep(groups, name)
        if left_alone:
            companion("removal").remove(pathlib.Path(folder))

    if hasattr(os, "fork"):
        companion("guard").guarded(companion("namespaces") if sandbox.PROCESSES in held else None, clean)
    Server(workers, held, groups, name, stranger).serve()


def main(arguments: list[str]) -> None:
    """See the module's docstring."""
    if arguments[:1] == ["--serve"]:
        stranger = Stranger(arguments[4], arguments[5:]) if arguments[4:] else None
        serve(int(arguments[1]), arguments[2], arguments[3].split(","), stranger)
        return
    if arguments[:1] == ["--confined"]:
        confined(*map(int, arguments[1:]))
        return
    with open(arguments[0], encoding="utf-8") as file:
        job = json.load(file)
    warm()
    run(job)


if __name__ == "__main__":
    main(sys.argv[1:])
