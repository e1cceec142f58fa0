"""What one watched run of a script did to gradients."""

from __future__ import annotations

import math
import operator
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from gradfix.core import ledger
from gradfix.core.ledger import Parameter
from gradfix.runtime.probe import BY_HAND
from gradfix.runtime.probe.coverage import Piece

Kind = Literal["E1", "E2", "E3", "E4", "E5", "other"]
"""Autograd's errors (see ``runtime/autograd_errors.py``): E1 the graph was freed, E2 a saved tensor was
modified, E3 there is nothing to differentiate, E4 a leaf is modified in place, E5 one of several views is
modified in place."""

Ending = Literal["finished", "error", "steps", "backwards", "seconds", "killed", "died", "values", "trouble"]
"""How a run ended: by itself, by an exception, by a spent budget, by the server's clock, by a
signal or an exit that the probe did not see, by the need for values in a run that computes none, or
by a failure of the recorder."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
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
class RecordedOptimizer:
    """An optimizer of the run; its index counts constructions."""

    index: int
    kind: str
    """The class's name."""
    place: SourceLocation
    """Where it was constructed."""
    name: str
    """What the script calls it, or its kind and line."""
    parameters: tuple[str, ...]
    """What the script calls its parameters (empty where that is unknown)."""
    settings: str = ""
    """The options of its parameter groups (learning rate, momentum, ...), as text."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """The shapes of its parameters."""
    tensors: tuple[int, ...] = ()
    """By parameter, a number that tells it from others, whoever owns it."""


@dataclass(frozen=True, slots=True)
class RecordedBackward:
    """A backward call that succeeded."""

    index: int
    """Counts successful backward calls."""
    place: SourceLocation
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
class RecordedStep:
    """An optimizer consumes gradients (for a closure: one evaluation of it)."""

    optimizer: int
    place: SourceLocation
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
class RecordedClearing:
    """Gradients were cleared, or assigned, since the event before: when exactly is not seen."""

    dropped: ledger.Calls
    """By optimizer and position of a parameter: the backward calls whose gradients it holds no more."""


@dataclass(frozen=True, slots=True)
class RecordedAdjustment:
    """The gradients of an optimizer were clipped or unscaled, or a schedule has set its learning rate."""

    kind: ledger.Kind
    optimizer: int


@dataclass(frozen=True, slots=True)
class RecordedFailure:
    """An exception: every one that autograd raised, caught or not, and the one that ended the run."""

    kind: Kind
    type: str
    """The exception's class."""
    message: str
    missing: str
    """The file or module that was missing, where the exception names one."""
    during: Literal["backward", "grad", "script"]
    place: SourceLocation
    """For :attr:`during` other than ``script``, the place of the call."""

    @property
    def autograd(self) -> bool:
        """Whether autograd raised it."""
        return self.kind != "other" or self.during != "script"

    def same_as(self, other: RecordedFailure) -> bool:
        """Whether it is the same error, whatever the line."""
        return (self.kind, self.type, self.message) == (other.kind, other.type, other.message)


RecordedEvent = RecordedBackward | RecordedStep | RecordedClearing | RecordedAdjustment | RecordedFailure


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
    optimizers: tuple[RecordedOptimizer, ...]
    events: tuple[RecordedEvent, ...]
    uncaught: RecordedFailure | None
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
    def backwards(self) -> tuple[RecordedBackward, ...]:
        """The successful backward calls, in order."""
        return tuple(event for event in self.events if isinstance(event, RecordedBackward))

    @cached_property
    def steps(self) -> tuple[RecordedStep, ...]:
        """The steps of all optimizers, in order."""
        return tuple(event for event in self.events if isinstance(event, RecordedStep))

    def steps_of(self, optimizer: int) -> tuple[RecordedStep, ...]:
        """The steps of one optimizer, in order."""
        return tuple(step for step in self.steps if step.optimizer == optimizer)

    @cached_property
    def crash(self) -> RecordedFailure | None:
        """The first error that autograd raised, caught by the script or not."""
        return next((e for e in self.events if isinstance(e, RecordedFailure) and e.autograd), None)

    @cached_property
    def until_crash(self) -> tuple[RecordedEvent, ...]:
        """The events before :attr:`crash`, all events if there is none."""
        return self.events[: self.events.index(self.crash)] if self.crash else self.events

    @cached_property
    def ledger(self) -> ledger.Ledger | None:
        """What each call gave, and its fate; ``None`` where the graphs of some calls are not known."""
        calls: list[ledger.BackwardCall] = []
        steps: list[ledger.OptimizerStep] = []
        clearings: list[ledger.Clearing] = []
        order: list[ledger.Happened] = []
        turns: Counter[int] = Counter()
        lent: set[ledger.Parameter] = set()
        for event in self.events:
            if isinstance(event, RecordedBackward):
                if event.through is None:
                    return None
                order.append(ledger.Happened("backward", len(calls)))
                calls.append(event.through.renamed(self._places) if self._owners else event.through)
            elif isinstance(event, RecordedStep):
                held = {(event.optimizer, at): one.feeds for at, one in enumerate(event.parameters)}
                consumed: ledger.Calls = {one: feeds for one, feeds in held.items() if feeds}
                lent.update(one for one, feeds in held.items() if BY_HAND in feeds)
                order.append(ledger.Happened("step", len(steps)))
                steps.append(ledger.OptimizerStep(event.optimizer, turns[event.optimizer], consumed))
                turns[event.optimizer] += 1
            elif isinstance(event, RecordedClearing):
                order.append(ledger.Happened("clearing", len(clearings)))
                dropped: ledger.Calls = {
                    place: lost for one, lost in event.dropped.items() for place in self._places(one)
                }
                clearings.append(ledger.Clearing(dropped))
            elif isinstance(event, RecordedAdjustment):
                order.append(ledger.Happened(event.kind, event.optimizer))
        return ledger.Ledger(tuple(calls), tuple(steps), tuple(clearings), tuple(order), frozenset(lent))

    @cached_property
    def _owners(self) -> Mapping[Parameter, list[tuple[int, int]]]:
        """By optimizer and position of a parameter that several own, perhaps later: all its places."""
        places: dict[int, list[tuple[int, int]]] = {}
        for optimizer in self.optimizers:
            for position, tensor in enumerate(optimizer.tensors):
                places.setdefault(tensor, []).append((optimizer.index, position))
        return {one: those for those in places.values() if len(those) > 1 for one in those}

    def _places(self, parameter: Parameter) -> Sequence[Parameter]:
        return self._owners.get(parameter, (parameter,))

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
