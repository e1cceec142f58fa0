"""The recorder: watches one run, and writes its events."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import torch

from ..autograd_errors import kind_of
from ..sandbox import clock
from . import dataless, draws, effects, provenance, rounding, traversal
from .descriptions import Descriptions
from .gradients import ParameterSlot
from .journal import EventWriter
from .places import NOWHERE, Places

GRAPH_NODES = 200_000


class Recorder:
    """Watches one run and writes its events."""

    def __init__(self, job: dict[str, Any], events: int, values: int) -> None:
        self.job = job
        self.journal = EventWriter(events, values)
        self.emit = self.journal.emit
        self.places = Places(job["path"], job["root"])
        self.limits: dict[str, Any] = job["limits"]
        self.pid = os.getpid()
        self.overlay: Any = None
        self.lock = threading.RLock()
        self.clock = clock.Clock()
        self.optimizers: list[Any] = []
        self.slots: dict[int, ParameterSlot] = {}
        self.tensors: dict[int, int] = {}
        """By the identity of a parameter: a number that tells it from others, whoever owns it."""
        self.leaves: dict[int, tuple[str, torch.Tensor]] = {}
        self.backwards = self.steps = self.errors = 0
        self.reached: set[tuple[int, ...]] = set()
        """The watched pieces that have been executed."""
        self.dithered = 0
        """How often weights were moved by as little as possible."""
        self.rounding: Any = rounding.Rounding(job["dither"]) if job["dither"] else None
        self.coarse = 0.0
        """What numbers of the type may differ by in which autocast has computed, relative to their size."""
        self.turns: dict[int, int] = {}
        """In a run that only scouts: how many steps each optimizer has taken, by identity."""
        self.idling = False
        """Whether steps without gradients, before the first backward call, are no longer written."""
        self.settings: dict[int, str] = {}
        self.clips: dict[int, list[tuple[str, float]]] = {}
        """By optimizer: how its gradients were clipped since its last step, and by what factor. Unscaling
        has no words."""
        self.depth = threading.local()
        self.provenance = provenance.Provenance(job["fake"])
        self.describe = Descriptions(self.journal, self.provenance if job["fake"] else None).describe
        self.effects = effects.SideEffects()
        self.traversals = traversal.Traversals(self.effects.saves)
        self.corrections: dict[int, tuple[bool, set[tuple[int, int]], frozenset[int]]] = {
            call: (cut, {(index, position) for index, position in dropped}, frozenset(used))
            for call, cut, dropped, used in job["corrections"]
        }
        """By backward call: whether what it takes for constants is cut off, for whom it gives nothing, and
        which of its terms give nothing."""
        self.draws: Any = None
        if job["numbered"]:
            self.draws = draws.Numbered(job["seed"], dict(job["numbers"]))

    def finish(self, how: str, raised: int | None = None) -> None:
        """Write the last event and leave the process at once."""
        self.lock.acquire()
        # A signal may have come in the middle of describing something: nothing is described then.
        calm = how in ("finished", "error")
        with self.bookkeeping():
            if calm:
                self.refresh(self.parameters())
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

    def unable(self, why: str) -> None:
        """End a run that computes nothing where it would need values."""
        self.emit("trouble", message=why)
        self.finish("values")

    def refused(self, error: BaseException) -> None:
        """Notice that an operation needs values."""
        if type(error).__name__ in dataless.ENDS:
            self.unable(f"an operation needs values that a run without data has not ({error})")

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

    def parameters(self) -> list[tuple[int, int, ParameterSlot]]:
        """Every owned parameter: its optimizer, its place in it, and its slot."""
        found = []
        for index, optimizer in enumerate(self.optimizers):
            tensors = (tensor for group in optimizer.param_groups for tensor in group["params"])
            for position, tensor in enumerate(tensors):
                slot = self.slots.get(id(tensor))
                if slot is None:
                    slot = self.slots[id(tensor)] = ParameterSlot(tensor)
                found.append((index, position, slot))
        return found

    def constructed(self, optimizer: Any, at: dict[str, Any]) -> int:
        """Register an optimizer; its index counts constructions."""
        self.optimizers.append(optimizer)
        self.dither(optimizer)
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        if self.draws:
            self.draws.begun = True
            self.draws.settle(tensors)
        names = self.places.names()
        self.emit(
            "optimizer",
            kind=type(optimizer).__name__,
            at=at,
            parameters=[names.get(id(tensor), "") for tensor in tensors],
            tensors=[self.tensors.setdefault(id(tensor), len(self.tensors)) for tensor in tensors],
            shapes=[[] if torch.nn.parameter.is_lazy(one) else list(one.shape) for one in tensors],
            settings=settings_of(optimizer),
        )
        return len(self.optimizers) - 1

    def dither(self, optimizer: Any) -> None:
        """Move the weights of an optimizer by as little as their type can tell, if the job asks for it."""
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
        names = self.places.names()
        taken = {name for name, _ in self.leaves.values()}
        for leaf in fresh:
            name = names.get(id(leaf)) or "leaf"
            number = 1
            while name + ("" if number == 1 else " #" + str(number)) in taken:
                number += 1
            name += "" if number == 1 else " #" + str(number)
            taken.add(name)
            self.leaves[id(leaf)] = (name, leaf)

    def about_to_differentiate(self) -> None:
        """End the run if it has made as many steps and backward calls as it may."""
        with self.lock:
            if self.idling:
                self.idling, self.steps = False, 0
            if self.steps >= self.limits["steps"]:
                self.finish("steps")
            # Where nothing has been handed to an optimizer, parameters are moved by hand after each call.
            if self.backwards >= self.limits["backwards" if self.optimizers else "steps"]:
                self.finish("backwards")
        self.provenance.leave_if_lost()

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
            self.failed(error, "backward", self.places.here())
            raise

    def passed(self, optimizer: Any) -> None:
        """An optimizer has stepped in such a run."""
        if self.steps >= self.limits["steps"]:
            self.finish("steps")
        self.steps += 1
        self.turns[id(optimizer)] = self.turns.get(id(optimizer), 0) + 1
        if self.turns[id(optimizer)] <= ENOUGH:
            self.scouted()

    def refresh(self, owned: list[tuple[int, int, ParameterSlot]]) -> None:
        """Notice which gradients have been cleared or assigned since the last look, and write that."""
        slots = {id(slot.tensor): slot for _, _, slot in owned}
        lost = {key: slot.refresh() for key, slot in slots.items()}
        cleared = [
            [index, position, lost[id(slot.tensor)]]
            for index, position, slot in owned
            if lost[id(slot.tensor)]
        ]
        if cleared:
            self.emit("cleared", parameters=cleared)

    def look(self, watched: dict[int, ParameterSlot]) -> None:
        """Find what holds the parameters that optimizers own; to compare repairs, what is like them, too."""
        describe = self.describe if self.job["updates"] else None
        self.effects.look((slot.tensor for slot in watched.values()), self.places.names, describe)

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
            self.refresh(owned)
            for index, _, slot in owned:
                if index == owner:
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
            owned = self.parameters()
            self.refresh(owned)
            holding = (index for index, _, slot in owned if slot.feeds and id(slot.tensor) in clipped)
            first = min(holding, default=None)
            if first is not None:
                self.emit("clipped", optimizer=first)
            for index, optimizer in enumerate(self.optimizers):
                own = [one for group in optimizer.param_groups for one in group["params"]]
                given = {id(one) for one in own if one.grad is not None}
                if given & clipped:
                    factor = 1.0
                    if norm is not None:
                        factor = max(0.0, min(1.0, how["max_norm"] / (float(norm) + 1e-6)))
                    self.clips.setdefault(index, []).append((text, factor if given <= clipped else 1.0))

    def multiplied(self, optimizer: Any, factor: float) -> None:
        """The gradients of an optimizer have been multiplied by a number that has nothing to do with them."""
        for index, known in enumerate(self.optimizers):
            if known is optimizer and 0.0 < factor <= 1.0:
                self.clips.setdefault(index, []).append(("", factor))

    def adjusted(self, how: str, optimizer: Any) -> None:
        """Something has been done to the gradients or the learning rate of an optimizer."""
        for index, known in enumerate(self.optimizers):
            if known is optimizer:
                self.emit(how, optimizer=index)

    def weights(self, optimizer: Any) -> list[Any]:
        """What an optimizer's parameters hold now."""
        return [self.describe(tensor) for group in optimizer.param_groups for tensor in group["params"]]


def settings_of(optimizer: Any) -> str:
    """The options of an optimizer's parameter groups, as text that is equal for equal options."""
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
    texts = (", ".join(one for one in group if one is not None) for group in groups)
    # Into how many groups parameters are put makes no difference while their options are equal.
    return "; ".join(text for text, _ in itertools.groupby(texts))


ROWS, COLUMNS = 24, 80
"""Of the terminal that a run has as its standard input."""

ENOUGH = 2
"""Steps after which a run lacks nothing any more."""
