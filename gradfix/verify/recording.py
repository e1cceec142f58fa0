"""What one watched run of a script did to gradients, as the probe recorded it.

Everything here is plain data, readable without torch: gradfix compares recordings in its own
process, which may have no torch at all. Small tensors are there whole, large ones as a sketch
(projections on fixed random signs, from which the distance of two tensors is estimated).
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import operator
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, get_args

from gradfix.core import ledger
from gradfix.system import hostile
from gradfix.verify.coverage import Piece

BY_HAND = -1
"""Stands among the backward calls that fed a gradient: something else assigned it."""

Kind = Literal["E1", "E2", "E3", "E4", "E5", "other"]
"""Autograd's errors (see ``probe.KINDS``): freed graph, moved saved tensor, nothing to
differentiate, leaf modified in place."""

Ending = Literal["finished", "error", "steps", "backwards", "seconds", "killed", "died", "values", "trouble"]
"""How a run ended: by itself, by an exception, by a spent budget, by the server's clock, by a
signal or an exit that the probe did not see, by the need for values in a run that computes none, or
by a failure of the recorder."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's code something happened."""

    line: int | None
    """The line of the script (from 1), ``None`` if no frame of the script was involved."""
    first: int = 0
    last: int = 0
    """The lines of the statement around it (of its header, for a compound statement)."""
    receiver: str | None = None
    """For a backward call: the source of what is differentiated, e.g. ``loss`` of ``loss.backward()``."""
    file: str | None = None
    """Another file of the project, relative to its root, if the innermost frame stands there."""
    file_line: int | None = None

    def covers(self, line: int) -> bool:
        """Whether ``line`` of the script belongs to the statement here."""
        return self.line is not None and (line == self.line or self.first <= line <= self.last)

    def __str__(self) -> str:
        if self.line is None:
            return f"{self.file}:{self.file_line}" if self.file else "an unknown line"
        return f"line {self.line}" + (f" ({self.file}:{self.file_line})" if self.file else "")


@dataclass(frozen=True, slots=True)
class Values:
    """A tensor's values at one moment, as float64."""

    shape: tuple[int, ...]
    dtype: str
    digest: str
    """Equal digests mean equal values, bit for bit, and equal shapes."""
    largest: float
    """The largest magnitude."""
    norm: float
    """The Euclidean norm."""
    finite: bool
    exact: array[float] | None = field(repr=False)
    """All elements, if there are few enough."""
    sketch: tuple[float, ...] = field(repr=False)
    """Otherwise projections on random signs that are the same in every run."""

    @property
    def numeric(self) -> bool:
        """Whether there are numbers at all; a run without data knows shapes and hashes only."""
        return self.exact is not None or bool(self.sketch)

    @property
    def zero(self) -> bool:
        """Whether every element is zero."""
        return self.largest == 0.0

    def plus(self, other: Values) -> Values:
        """The sum of two tensors of the same shape (its digest is its own)."""
        exact = None
        if self.exact is not None and other.exact is not None:
            exact = array("d", map(operator.add, self.exact, other.exact))
        numbers = exact or ()
        return replace(
            self,
            digest=f"{self.digest}+{other.digest}",
            largest=max(map(abs, numbers), default=self.largest + other.largest),
            norm=math.hypot(*numbers) if exact else self.norm + other.norm,
            finite=self.finite and other.finite,
            exact=exact,
            sketch=tuple(map(operator.add, self.sketch, other.sketch)),
        )

    def times(self, factor: float) -> Values:
        """All elements multiplied (its digest is its own)."""
        return replace(
            self,
            digest=f"{self.digest}*{factor!r}",
            largest=self.largest * abs(factor),
            norm=self.norm * abs(factor),
            exact=None if self.exact is None else array("d", (factor * one for one in self.exact)),
            sketch=tuple(factor * one for one in self.sketch),
        )

    def minus(self, other: Values) -> list[float]:
        """Numbers of which the Euclidean norm is proportional to that of the difference.

        Those of tensors of one shape may be subtracted from each other again.
        """
        if self.exact is not None and other.exact is not None:
            return list(map(operator.sub, self.exact, other.exact))
        return list(map(operator.sub, self.sketch, other.sketch))

    def distance(self, other: Values) -> float:
        """The largest difference of two elements relative to the largest magnitude of both.

        For tensors that are only there as a sketch it is the estimated norm of the difference
        relative to the larger norm. Infinite for different shapes, NaN where values are not finite.
        """
        if self.digest == other.digest:
            return 0.0
        if self.shape != other.shape:
            return math.inf
        if self.exact is not None and other.exact is not None:
            scale = max(self.largest, other.largest)
            apart = max((abs(a - b) for a, b in zip(self.exact, other.exact)), default=0.0)
        else:
            scale = max(self.norm, other.norm)
            squares = [(a - b) ** 2 for a, b in zip(self.sketch, other.sketch)]
            apart = math.sqrt(sum(squares) / len(squares)) if squares else 0.0
        if not (self.finite and other.finite):
            return math.nan
        return apart / scale if scale else 0.0


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer of the run; its index counts constructions."""

    index: int
    kind: str
    """The class's name."""
    place: Place
    """Where it was constructed."""
    name: str
    """What the script calls it, or its kind and line."""
    parameters: tuple[str, ...]
    """What the script calls its parameters (empty where that is unknown)."""
    settings: str = ""
    """The options of its parameter groups (learning rate, momentum, ...), as text."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """The shapes of its parameters."""


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward call that succeeded."""

    index: int
    """Counts successful backward calls."""
    place: Place
    retain: bool
    """Whether the script asked to retain the graph, as it does when it asks for a graph of the gradients."""
    value: Values | None
    """The value that was differentiated."""
    reached: frozenset[tuple[int, int]]
    """``(optimizer, position)`` of the parameters whose gradient it accumulated into."""
    shares: Mapping[tuple[int, int], Values]
    """What it added to each of them (only recorded while the weights are held still)."""
    leaves: Mapping[str, Values | None]
    """While there is no optimizer: the gradients, after the call, of the leaves that it reached."""
    weights: Mapping[str, Values] = field(default_factory=dict)
    """While there is no optimizer: what the leaves held that calls have reached until then."""
    saved: int | None = None
    """Bytes that the graph held for it before it ran, beside parameters; ``None`` where nothing is known."""
    seconds: float = 0.0
    """How long it took, watched as it was."""
    through: ledger.BackwardCall | None = None
    """The terms of the loss and what each depends on; ``None`` where nothing is known."""
    noise: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """By how much rounding alone may change an element of each share."""
    floor: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """What rounding may leave of an element of each share that is zero."""


@dataclass(frozen=True, slots=True)
class ParameterState:
    """One parameter at the moment when its optimizer steps."""

    gradient: Values | None
    value: Values
    feeds: tuple[int, ...]
    """The backward calls that accumulated into the gradient since it was last cleared
    (:data:`BY_HAND` for anything else that assigned it)."""
    gradient_hash: str | None = None
    """How the gradient was computed, see ``provenance.py``: equal hashes of two runs with the same seed
    prove equal bits, different ones prove nothing. ``None`` where nothing is known."""
    value_hash: str | None = None
    """How the parameter's value was computed."""
    noise: float = 0.0
    """By how much rounding alone may change an element of the gradient; of one that is only there as a
    sketch, its norm (see :func:`noisy`)."""
    floor: float = 0.0
    """What rounding may leave of an element of the gradient where its terms add up to zero."""

    @property
    def moves(self) -> bool:
        """Whether there is a gradient that is not zero."""
        return self.gradient is not None and not self.gradient.zero


@dataclass(frozen=True, slots=True)
class Draws:
    """Digests of the states of the random generators: equal ones mean equal draws so far."""

    torch: str
    """Torch's own generator, for the CPU."""
    python: str
    """The module ``random``."""
    numpy: str | None
    """The global generator of ``numpy.random``, ``None`` without numpy."""

    def apart(self, other: Draws) -> tuple[str, ...]:
        """The generators whose states differ, by the module that they belong to."""
        return tuple(
            name for name in ("torch", "python", "numpy") if getattr(self, name) != getattr(other, name)
        )


Graphs = tuple[int, int, int]
"""How many nodes of graphs were made until then, how many graphs that have been differentiated are still
referred to, and, when a run ends, how many references there are to tensors with a graph."""


@dataclass(frozen=True, slots=True)
class Step:
    """An optimizer consumes gradients (for a closure: one evaluation of it)."""

    optimizer: int
    place: Place
    random: Draws
    parameters: tuple[ParameterState, ...]
    buffers: Mapping[str, Values] = field(default_factory=dict)
    """The buffers of the networks that any optimizer trains, e.g. running statistics, by name."""
    others: Mapping[str, Values] = field(default_factory=dict)
    """The parameters of named networks that no optimizer owns, if that was asked for: averages, targets."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """By module of torch's own, with its class: its settings, as text."""
    clips: tuple[str, ...] = ()
    """How its gradients were clipped since the step before, as text, if that was asked for."""
    scale: float = 1.0
    """By what that has multiplied all of them."""
    draws: frozenset[tuple[str, int]] = frozenset()
    """The random draws that its gradients depend on, in a numbered run: a digest of the kind, the number."""
    drawn: Mapping[str, int] = field(default_factory=dict)
    """By kind: how many draws there were until then, in such a run."""
    after: tuple[Values, ...] | None = None
    """The parameters when the step was over, if that was asked for (and it did come to be over)."""
    settings: str = ""
    """The options of the optimizer's parameter groups when it began, as text."""
    graphs: Graphs = (0, 0, 0)

    @property
    def consumes(self) -> bool:
        """Whether any parameter holds a gradient that a backward call, or a hand, put there."""
        return any(p.gradient is not None and (p.feeds or not p.gradient.zero) for p in self.parameters)


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception: every one that autograd raised, caught or not, and the one that ended the run."""

    kind: Kind
    type: str
    """The exception's class."""
    message: str
    missing: str
    """The file or module that was missing, where the exception names one."""
    during: Literal["backward", "grad", "script"]
    place: Place
    """For :attr:`during` other than ``script``, the place of the call."""

    @property
    def autograd(self) -> bool:
        """Whether autograd raised it."""
        return self.kind != "other" or self.during != "script"

    def same_as(self, other: Failure) -> bool:
        """Whether it is the same error, whatever the line."""
        return (self.kind, self.type, self.message) == (other.kind, other.type, other.message)


Event = Backward | Step | Failure


@dataclass(frozen=True)
class Recording:
    """One run of one script."""

    source: str
    seed: int
    ending: Ending
    detail: str
    """More about the ending, e.g. the signal."""
    torch: str
    """Version of torch, empty if the run did not get that far."""
    python: str
    optimizers: tuple[Optimizer, ...]
    events: tuple[Event, ...]
    uncaught: Failure | None
    """The exception that ended the run."""
    leaves: Mapping[str, Values | None]
    """Without an optimizer: the gradients of all leaves when the run ended by itself or by an error."""
    seconds: float
    """How long it took, without what it waited for a processor; 0 if it could not say."""
    output: str = ""
    """The end of what the script printed, standard error last."""
    standins: tuple[str, ...] = ()
    """What was missing or reduced, and what the run got in its place."""
    schema: str = ""
    """The schema with which the run might get further, where it lacked something (see ``Job.schema``)."""
    weights: tuple[tuple[Values, ...], ...] = ()
    """By optimizer: its parameters when the run ended by itself or by an error, if that was asked for."""
    held: Mapping[str, Values] = field(default_factory=dict)
    """Without an optimizer: what all leaves held when the run ended by itself or by an error."""
    reached: Mapping[Piece, bool] = field(default_factory=dict)
    """Of each watched piece of the program (see ``coverage.py``), whether it was executed."""
    graphs: Graphs = (0, 0, 0)
    """What there was of graphs when the run ended, but for what the system ended."""
    scouted: tuple[int, int] = (0, 0)
    """How many steps and backward calls it took a run that only scouts to come to what it was looking for."""

    @cached_property
    def backwards(self) -> tuple[Backward, ...]:
        """The successful backward calls, in order."""
        return tuple(event for event in self.events if isinstance(event, Backward))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all optimizers, in order."""
        return tuple(event for event in self.events if isinstance(event, Step))

    def steps_of(self, optimizer: int) -> tuple[Step, ...]:
        """The steps of one optimizer, in order."""
        return tuple(step for step in self.steps if step.optimizer == optimizer)

    @cached_property
    def crash(self) -> Failure | None:
        """The first error that autograd raised, caught by the script or not."""
        return next((e for e in self.events if isinstance(e, Failure) and e.autograd), None)

    @cached_property
    def until_crash(self) -> tuple[Event, ...]:
        """The events before :attr:`crash`, all events if there is none."""
        return self.events[: self.events.index(self.crash)] if self.crash else self.events

    @cached_property
    def ledger(self) -> ledger.Ledger | None:
        """Who consumed what; ``None`` where the graphs of some calls are not known."""
        calls = tuple(call.through for call in self.backwards if call.through is not None)
        if len(calls) < len(self.backwards):
            return None
        turns: Counter[int] = Counter()
        steps = []
        for step in self.steps:
            consumed: dict[ledger.Parameter, tuple[int, ...]] = {
                (step.optimizer, position): state.feeds
                for position, state in enumerate(step.parameters)
                if state.feeds
            }
            steps.append(ledger.OptimizerStep(step.optimizer, turns[step.optimizer], consumed))
            turns[step.optimizer] += 1
        return ledger.Ledger(calls, tuple(steps))

    @cached_property
    def moved_otherwise(self) -> frozenset[tuple[int, int]]:
        """The parameters, by optimizer and position, that something other than their optimizer's steps moves,
        if updates were recorded."""
        found: set[tuple[int, int]] = set()
        for optimizer in self.optimizers:
            steps = self.steps_of(optimizer.index)
            later = [tuple(state.value for state in step.parameters) for step in steps[1:]]
            if optimizer.index < len(self.weights):
                later.append(self.weights[optimizer.index])
            for step, weights in zip(steps, later):
                pairs = enumerate(zip(step.after or (), weights))
                found.update((optimizer.index, place) for place, (a, b) in pairs if a.digest != b.digest)
        return frozenset(found)

    def receivers(self, feeds: Sequence[int]) -> frozenset[str | None]:
        """What the backward calls differentiate (``None`` among them: unknown or by hand)."""
        return frozenset(None if f == BY_HAND else self.backwards[f].place.receiver for f in feeds)

    def parameter(self, optimizer: int, position: int) -> str:
        """What to call a parameter when speaking to people."""
        names = self.optimizers[optimizer].parameters
        name = names[position] if position < len(names) else ""
        return name or f"parameter {position} of {self.optimizers[optimizer].name}"

    def ran(self) -> str:
        """What was reached, for people: ``ran 6 steps of optimD and 6 of optimG``."""
        counts = [(len(self.steps_of(o.index)), o.name) for o in self.optimizers]
        stepped = [(count, name) for count, name in counts if count]
        if not stepped:
            return f"ran {plural(len(self.backwards), 'backward call')}"
        (count, name), *rest = stepped
        return f"ran {plural(count, 'step')} of {name}" + "".join(
            (" and " if following is rest[-1] else ", ") + f"{following[0]} of {following[1]}"
            for following in rest
        )


def plural(count: int, noun: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


class Source:
    """Answers where in a source something stands."""

    def __init__(self, text: str) -> None:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            tree = ast.Module([], [])
        nodes = list(ast.walk(tree))
        self._statements = [node for node in nodes if isinstance(node, ast.stmt)]
        self._calls = [node for node in nodes if isinstance(node, ast.Call)]

    def statement(self, line: int) -> tuple[int, int]:
        """The lines of the innermost statement around ``line`` (of its header, if it is compound)."""
        best = (line, line)
        start = 0
        for node in self._statements:
            last = node.end_lineno or node.lineno
            body = getattr(node, "body", None)
            if body:
                last = max(node.lineno, body[0].lineno - 1)
            if node.lineno <= line <= last and node.lineno >= start:
                best, start = (node.lineno, last), node.lineno
        return best

    def receiver(self, position: Sequence[int | None], tensor: bool) -> str | None:
        """What the backward call at ``position`` differentiates.

        ``position`` is ``line, end_line, column, end_column`` as bytecode knows it; ``tensor``
        says that it is the receiver of the call (otherwise the first argument is).
        """
        line, end_line, _, end_column = position
        # A call's end is its own closing bracket: no two calls share it.
        calls = [c for c in self._calls if (c.end_lineno, c.end_col_offset) == (end_line, end_column)]
        if end_line is None:
            calls = [c for c in self._calls if c.lineno == line and _is_backward(c)]
        if len(calls) != 1:
            return None
        (call,) = calls
        if tensor and isinstance(call.func, ast.Attribute):
            return ast.unparse(call.func.value)
        # `torch.autograd.backward(loss)`, `accelerator.backward(loss)`; never `trainer.fit(model)`.
        named = not tensor and ast.unparse(call.func).endswith("backward")
        return ast.unparse(call.args[0]) if named and call.args else None

    def constructed(self, position: Sequence[int | None]) -> str | None:
        """What the result of the constructor call at ``position`` is assigned to."""
        line, end_line, _, end_column = position
        for node in self._statements:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if len(targets) == 1:
                for name, value in _assigned(targets[0], node.value):
                    if (value.end_lineno, value.end_col_offset) == (end_line, end_column) or (
                        end_line is None and value.lineno == line
                    ):
                        return name
        return None


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The calls in an assignment, and how to reach what each returns."""
    if isinstance(value, ast.Call):
        if isinstance(target, ast.Name | ast.Attribute):
            yield ast.unparse(target), value
    elif isinstance(value, ast.Tuple | ast.List):
        if isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(value.elts):
            for name, item in zip(target.elts, value.elts):
                yield from _assigned(name, item)
        elif isinstance(target, ast.Name | ast.Attribute):
            yield from ((f"{ast.unparse(target)}[{i}]", item) for i, item in enumerate(value.elts))
    elif isinstance(value, ast.Dict) and isinstance(target, ast.Name | ast.Attribute):
        for key, item in zip(value.keys, value.values):
            if key is not None:
                yield f"{ast.unparse(target)}[{ast.unparse(key)}]", item


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def noisy(run: Recording, *dithered: Recording) -> Recording:
    """``run`` with what rounding makes of its gradients, as other runs show that have rounded otherwise."""
    for other in dithered:
        run = _noisier(run, other)
    return run


def _noisier(run: Recording, dithered: Recording) -> Recording:
    mates = {
        optimizer.index: list(dithered.steps_of(optimizer.index))[::-1] for optimizer in dithered.optimizers
    }
    calls = list(dithered.backwards)[::-1]

    def known(event: Event) -> Event:
        if isinstance(event, Step) and mates.get(event.optimizer):
            pairs = zip(event.parameters, mates[event.optimizer].pop().parameters)
            return replace(event, parameters=tuple(_doubtful(a, b) for a, b in pairs))
        if isinstance(event, Backward) and calls:
            other = calls.pop()
            noise = {
                place: max(event.noise.get(place, 0.0), _noise(share, other.shares.get(place)))
                for place, share in event.shares.items()
            }
            floor = {place: max(size, event.floor.get(place, 0.0)) for place, size in other.floor.items()}
            return replace(event, noise=noise, floor=floor)
        return event

    return replace(run, events=tuple(known(event) for event in run.events))


def _doubtful(one: ParameterState, other: ParameterState) -> ParameterState:
    """A state with what another run shows, which has rounded otherwise."""
    noise = max(one.noise, _noise(one.gradient, other.gradient))
    return replace(one, noise=noise, floor=max(one.floor, other.floor))


def _noise(one: Values | None, other: Values | None) -> float:
    """By how much two gradients differ."""
    if one is None or other is None:
        return 0.0
    apart = one.distance(other)
    scale = max(one.largest, other.largest) if one.exact is not None else max(one.norm, other.norm)
    return apart * scale if math.isfinite(apart) else 0.0


EVENTS, VALUES, NUMBERS = 64 << 20, 512 << 20, 100_000
"""Bytes of events and of values that are read, and the number of events."""

SCHEMA = 1 << 16
"""Characters that a schema may have."""

UNPRINTABLE = re.compile(r"[^\t\n\r -~\xa0-\ud7ff\ue000-\U0010ffff]")
"""What is not printed of a script's texts: escape sequences may rule the terminal that shows them."""


class Forged(ValueError):
    """The files of a run hold what the probe never writes: the script has written to them."""


class _Loader:
    """Builds a recording from the files of one run.

    The process that writes them runs the user's code too, so they may hold anything at all.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self.source = Source(source)
        self.folder = folder
        self.bytes = hostile.read(folder / "values.bin", VALUES)
        self.made: dict[tuple[str, int | None], Values] = {}
        self.buffers: dict[str, Values] = {}
        self.others: dict[str, Values] = {}
        self.modules: dict[str, str] = {}
        self.settings: dict[int, str] = {}

    def clean(self, text: str) -> str:
        """``text`` without the folders of the run: what is in the layer lies where the script put it."""
        scratch = self.folder / "scratch"
        text = text.replace(f"{scratch}/.overlay/", "/")
        for folder in (scratch, self.folder):
            text = text.replace(f"{folder}/", "").replace(str(folder), ".")
        return UNPRINTABLE.sub("?", text)

    def values(self, entry: list[Any] | None) -> Values | None:
        if entry is None:
            return None
        shape, dtype, digest, largest, norm, finite, offset, sketch = entry
        known = self.made.get((digest, offset))
        if known is None:
            exact: array[float] | None = None
            if offset is not None:
                exact = array("d")
                size = 8 * math.prod(shape)
                if not 0 <= offset <= offset + size <= len(self.bytes):
                    raise Forged("a tensor lies outside the file of values")
                exact.frombytes(self.bytes[offset : offset + size])
            known = self.made[digest, offset] = Values(
                shape=tuple(shape),
                dtype=dtype,
                digest=digest,
                largest=float(largest),
                norm=float(norm),
                finite=finite,
                exact=exact,
                sketch=tuple(float(number) for number in sketch or ()),
            )
        return known

    def given(self, entry: list[Any]) -> Values:
        values = self.values(entry)
        if values is None:
            raise Forged("there is no tensor where one must be")
        return values

    def updated(self, known: dict[str, Values], changed: dict[str, Any]) -> dict[str, Values]:
        """What is known of tensors by name, with what has changed."""
        given = {self.clean(name): self.given(entry) for name, entry in changed.items()}
        return {**known, **given} if given else known

    def place(self, at: dict[str, Any]) -> Place:
        inner = at["inner"] or {}
        if at["script"] is None:
            return Place(None, file=inner.get("file"), file_line=inner.get("line"))
        line = at["script"][0]
        first, last = self.source.statement(line)
        receiver = None if inner else self.source.receiver(at["script"], at["tensor"])
        return Place(line, first, last, receiver, inner.get("file"), inner.get("line"))

    def event(self, raw: dict[str, Any], backwards: int) -> Event:
        place = self.place(raw["at"])
        if raw["event"] == "backward":
            return Backward(
                index=backwards,
                place=place,
                retain=raw["retain"],
                value=self.values(raw["value"]),
                reached=frozenset((index, position) for index, position in raw["reached"]),
                shares={(index, position): self.given(share) for index, position, share in raw["shares"]},
                leaves={name: self.values(entry) for name, entry in raw["leaves"].items()},
                weights={name: self.given(entry) for name, entry in raw.get("weights", {}).items()},
                saved=raw["saved"],
                seconds=raw.get("seconds", 0.0),
                through=self.through(raw.get("through"), backwards, place),
                floor={(index, position): float(size) for index, position, size in raw.get("terms", ())},
            )
        if raw["event"] == "step":
            floors = map(float, raw.get("terms") or itertools.repeat(0.0))
            states = (
                replace(
                    ParameterState(self.values(gradient), self.given(value), tuple(feeds), *hashes),
                    floor=floor,
                )
                for (gradient, value, feeds, *hashes), floor in zip(raw["parameters"], floors)
            )
            # Steps between which nothing changes share one mapping.
            self.buffers = self.updated(self.buffers, raw["buffers"])
            self.others = self.updated(self.others, raw.get("others", {}))
            modules = {self.clean(name): self.clean(text) for name, text in raw.get("modules", {}).items()}
            self.modules = {**self.modules, **modules} if modules else self.modules
            index = raw["optimizer"]
            self.settings[index] = self.clean(raw.get("settings", self.settings.get(index, "")))
            random = Draws(*raw["random"])
            clips = [(self.clean(how), float(factor)) for how, factor in raw.get("clips", ())]
            return Step(
                index,
                place,
                random,
                tuple(states),
                self.buffers,
                self.others,
                self.modules,
                tuple(how for how, _ in clips),
                math.prod(factor for _, factor in clips),
                frozenset((what, number) for what, number in raw.get("draws", ())),
                dict(raw.get("drawn", {})),
                settings=self.settings[index],
                graphs=_graphs(raw.get("graphs")),
            )
        return Failure(
            kind=raw["kind"],
            type=raw["type"],
            message=self.clean(raw["message"]),
            missing=self.clean(raw["missing"]),
            during=raw["during"],
            place=place,
        )

    def through(self, raw: dict[str, Any] | None, index: int, place: Place) -> ledger.BackwardCall | None:
        """What a backward call went through (see ``traversal.py``)."""
        if raw is None:
            return None
        used = [
            frozenset[ledger.Parameter]((int(one), int(at)) for one, at in each) for each in raw["layers"]
        ]
        behind = _closed([tuple(map(int, each)) for each in raw["below"]])
        flow = ledger.GradientFlow(used, behind)
        firsts = [first for _, _, first, _ in raw["terms"]]
        numbered = [(int(number), int(count), bool(predicts)) for number, count, _, predicts in raw["terms"]]
        again = frozenset(call for call in map(int, raw["again"]) if 0 <= call < index)
        stale = frozenset[ledger.Parameter]((int(one), int(at)) for one, at in raw["stale"])

        def call(
            flow: ledger.GradientFlow, firsts: Sequence[Sequence[int]], **more: Any
        ) -> ledger.BackwardCall:
            terms = []
            for (number, count, predicts), first in zip(numbered, firsts):
                direct = frozenset(parameter for layer in first for parameter in used[layer])
                terms.append(ledger.Term(number, count, flow.reached(first), direct, predicts))
            return ledger.BackwardCall(
                index, place.receiver or str(place), tuple(terms), flow, again, stale, **more
            )

        if "cut" not in raw:
            return call(flow, firsts)
        below = _closed([tuple(map(int, each)) for each in raw["cut"]["below"]])
        cut = call(ledger.GradientFlow(used, below), raw["cut"]["terms"])
        return call(flow, firsts, constants=flow.reached(raw["constants"]), cut=cut)

    def optimizer(self, raw: dict[str, Any], index: int) -> Optimizer:
        place = self.place(raw["at"])
        name = self.source.constructed(raw["at"]["script"]) if place.line and not place.file else None
        name = name or f"the {raw['kind']} of {place}"
        shapes = tuple(tuple(shape) for shape in raw["shapes"])
        return Optimizer(index, raw["kind"], place, name, tuple(raw["parameters"]), raw["settings"], shapes)


def _closed(below: Sequence[Sequence[int]]) -> list[frozenset[int]]:
    """By layer, all that come after it; each comes before those that come next.

    Raises:
        Forged: if they do not.
    """
    closed: list[frozenset[int]] = [frozenset()] * len(below)
    for layer in reversed(range(len(below))):
        if not all(layer < following < len(below) for following in below[layer]):
            raise Forged("a graph that goes round in circles")
        closed[layer] = frozenset(below[layer]).union(*(closed[following] for following in below[layer]))
    return closed


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in hostile.read(path, EVENTS).split(b"\n", NUMBERS)[:NUMBERS]:
        try:
            event = json.loads(line)
        except ValueError:
            return  # the process was ended while it wrote this line
        yield event


def _tail(path: Path, size: int = 4000) -> str:
    return hostile.read(path, size, tail=True).decode("utf-8", "replace")


def load(
    folder: Path, source: str, seed: int, fallback: tuple[Ending, str], watched: Collection[Piece] = ()
) -> Recording:
    """Read what the probe wrote into ``folder`` when it ran ``source``.

    ``fallback`` is the ending of a run whose process could not write its own, and its detail; ``watched`` are
    the pieces of the program that the probe was to watch. Where the files make no sense the recording is
    empty, and its ending is ``trouble``.
    """
    try:
        recording = _load(folder, source, seed, fallback, watched)
        _check(recording)
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        detail = (
            f"the record of the run makes no sense ({type(error).__name__}): its own code has written to it"
        )
        empty = Recording(source, seed, "trouble", detail, "", "", (), (), None, {}, 0.0)
        return replace(empty, reached=dict.fromkeys(watched, False))
    return recording


def _load(
    folder: Path, source: str, seed: int, fallback: tuple[Ending, str], watched: Collection[Piece]
) -> Recording:
    loader = _Loader(folder, source)
    events: list[Event] = []
    optimizers: list[Optimizer] = []
    standins: list[str] = []
    reached: set[Piece] = set()
    scouted = (0, 0)
    schema = ""
    start: dict[str, Any] = {}
    end: dict[str, Any] = {}
    detail = ""
    backwards = 0
    for raw in _lines(folder / "events.jsonl"):
        match raw["event"]:
            case "start":
                start = raw
            case "optimizer":
                optimizers.append(loader.optimizer(raw, len(optimizers)))
            case "standin":
                standins.append(loader.clean(f"{raw['what']}: {raw['gave']}"))
            case "trouble":
                detail = loader.clean(raw["message"])
            case "schema":
                schema = str(raw["text"]) if len(str(raw["text"])) <= SCHEMA else ""
            case "reached":
                reached.add(_piece(raw["piece"]))
            case "scouted":
                scouted = int(raw["steps"]), int(raw["backwards"])
            case "end":
                end = raw
            case "stepped":
                last = max(i for i, one in enumerate(events) if _steps(one, raw["optimizer"]))
                after = tuple(loader.given(entry) for entry in raw["weights"])
                events[last] = replace(cast(Step, events[last]), after=after)
            case _:
                events.append(loader.event(raw, backwards))
                backwards += raw["event"] == "backward"
    names = Counter(optimizer.name for optimizer in optimizers)
    turns: Counter[str] = Counter()
    for optimizer in optimizers:
        turns[optimizer.name] += 1
        if names[optimizer.name] > 1:
            name = f"{optimizer.name} #{turns[optimizer.name]}"
            optimizers[optimizer.index] = replace(optimizer, name=name)
    failures = [event for event in events if isinstance(event, Failure)]
    raised = end.get("raised")
    return Recording(
        source=source,
        seed=seed,
        ending=end.get("how", fallback[0]),
        detail=detail if end else fallback[1],
        torch=start.get("torch", ""),
        python=start.get("python", ""),
        optimizers=tuple(optimizers),
        events=tuple(events),
        uncaught=failures[raised] if raised is not None else None,
        leaves={name: loader.values(entry) for name, entry in end.get("leaves", {}).items()},
        seconds=end.get("seconds", 0.0),
        output=loader.clean(_tail(folder / "stdout.txt") + _tail(folder / "stderr.txt")),
        standins=tuple(standins),
        schema=schema,
        weights=tuple(tuple(map(loader.given, entries)) for entries in end.get("weights", ())),
        held={name: loader.given(entry) for name, entry in end.get("held", {}).items()},
        reached={piece: piece in reached for piece in watched},
        scouted=scouted,
        graphs=_graphs(end.get("graphs")),
    )


def _graphs(raw: Sequence[int] | None) -> Graphs:
    made, alive, references = map(int, raw or (0, 0, 0))
    return made, alive, references


def _piece(raw: Sequence[int]) -> Piece:
    line, column, last, end = map(int, raw)
    return line, column, last, end


def _steps(event: Event, optimizer: int) -> bool:
    return isinstance(event, Step) and event.optimizer == optimizer


def _check(recording: Recording) -> None:
    """Hold a recording against what the probe can have written, as far as others rely on it.

    Raises:
        Forged: if it cannot have.
    """
    backwards = 0
    for event in recording.events:
        if isinstance(event, Step):
            if not 0 <= event.optimizer < len(recording.optimizers):
                raise Forged("a step of no optimizer")
            if not 0.0 <= event.scale <= 1.0:
                raise Forged("clipped gradients that have grown")
            if any(not BY_HAND <= feed < backwards for state in event.parameters for feed in state.feeds):
                raise Forged("a gradient of a backward call that did not happen")
            digests = event.random.torch, event.random.python, event.random.numpy or ""
            if not all(
                type(n) is int and 0 <= n < event.drawn.get(what, 0) <= NUMBERS for what, n in event.draws
            ):
                raise Forged("a random draw that did not happen")
            if not all(type(count) is int and count <= NUMBERS for count in event.drawn.values()):
                raise Forged("a number that is none")
            if not all(isinstance(text, str) for text in (*digests, *event.buffers, *event.others)):
                raise Forged("what is no text stands for one")
        elif isinstance(event, Backward):
            backwards += 1
            if any(not 0 <= index < len(recording.optimizers) for index, _ in event.reached):
                raise Forged("a parameter of no optimizer")
            if not (event.saved is None or (type(event.saved) is int and event.saved >= 0)):
                raise Forged("a graph that holds less than nothing")
            if not (type(event.seconds) is float and 0 <= event.seconds < math.inf):
                raise Forged("a call that takes no time")
    if not all(type(n) is int for one in recording.optimizers for shape in one.shapes for n in shape):
        raise Forged("a shape of no numbers")
    texts = [recording.torch, recording.python, recording.detail, *(f.message for f in _failures(recording))]
    texts += [name for optimizer in recording.optimizers for name in (optimizer.kind, *optimizer.parameters)]
    if not all(isinstance(text, str) for text in texts) or recording.ending not in get_args(Ending):
        raise Forged("what is no text stands for one")
    if not (isinstance(recording.seconds, float) and math.isfinite(recording.seconds)):
        raise Forged("no time was taken")


def _failures(recording: Recording) -> Iterator[Failure]:
    return (event for event in recording.events if isinstance(event, Failure))
