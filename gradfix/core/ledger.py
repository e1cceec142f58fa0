"""The ledger of gradients: which parameters each backward call gave gradients, and what became of these.

Right training keeps one rule: at every step, each parameter that the optimizer owns receives exactly one
entry of each loss that is meant for it, computed with the weights that the step moves, and no other. What
breaks it is looked for here; which loss is *meant* for whom is the subject of :mod:`gradfix.core.intent`.

The model writes it of a program (:mod:`gradfix.autograd.model_ledger`), the recorder of a run
(:attr:`gradfix.verify.recording.records.Recording.ledger`); tests hold the two against each other entry by
entry. Plain data, standard library only. Parameters are whatever tells one from the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

Parameter = Hashable
Parameters = frozenset[Parameter]
Calls = Mapping[Parameter, tuple[int, ...]]
"""By parameter: the calls whose entries its gradient holds."""


@dataclass(frozen=True, slots=True)
class GradientFlow:
    """How a gradient flows back from one operation with parameters to the next.

    A layer is an operation that uses parameters, whatever computes it.
    """

    layers: Sequence[Parameters]
    """The parameters that each uses."""
    behind: Sequence[frozenset[int]]
    """For each layer, the indices of all layers that its gradient flows on to."""

    def reached(self, first: Iterable[int]) -> Parameters:
        """The parameters of some layers and of all those behind them."""
        layers = {layer for start in first for layer in (start, *self.behind[start])}
        return frozenset().union(*(self.layers[layer] for layer in layers))

    def through(self, parameters: Collection[Parameter]) -> Parameters:
        """The parameters that a gradient gets to by way of a layer that uses one of these."""
        passed = [index for index, used in enumerate(self.layers) if not used.isdisjoint(parameters)]
        layers = {layer for start in passed for layer in self.behind[start]}
        return frozenset().union(*(self.layers[layer] for layer in layers))


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a loss, which is a sum: ``a + 0.5 * b`` has the terms of ``a`` and of ``b``."""

    number: int
    """Tells it from all other terms of the program; the same term in two calls is one loss twice."""
    count: int
    """How often the loss adds or subtracts it."""
    reached: Parameters
    """The parameters that it depends on."""
    direct: Parameters
    """Those of the layers that its gradient gets to first."""
    predicts: bool = False
    """Whether it holds a prediction against data: whatever the prediction is made of is trained by it."""
    scale: Hashable = None
    """By what the loss multiplies it: the same for equal factors, None where it is not known, or not one."""


class Versions(NamedTuple):
    """How often steps had moved a parameter."""

    forward: int | None
    """When the graph used it first; None where that is not known."""
    backward: int
    """When the call was made."""


@dataclass(frozen=True, slots=True)
class BackwardCall:
    """A backward call."""

    index: int
    """Counts the calls."""
    loss: str
    """What is differentiated, for people."""
    terms: tuple[Term, ...] = ()
    flow: GradientFlow = GradientFlow((), ())
    again: frozenset[int] = frozenset()
    """Earlier calls that have gone through a part of the same graph."""
    gives: Mapping[Parameter, Versions] = field(default_factory=dict)
    """The parameters that it adds an entry to."""
    unsure: Parameters = frozenset()
    """Those of which it is not certain that it does."""
    followed: bool = True
    """Whether it certainly adds none to any other parameter."""
    constants: Parameters = frozenset()
    """Those that it depends on by way of what its losses take for a constant: the target of a criterion, what
    weighs the likelihood of something that was drawn by it."""
    weighs: bool = False
    """Whether all of these weigh likelihoods: no loss is meant to train what weighs one."""
    without_constants: BackwardCall | None = None
    """The same call if its losses did not depend on these constants, where there are any."""

    @property
    def reached(self) -> Parameters:
        """The parameters that the loss depends on."""
        return frozenset().union(*(term.reached for term in self.terms))

    def renamed(self, names: Callable[[Parameter], Iterable[Parameter]]) -> BackwardCall:
        """The same with other names for parameters, perhaps with several for one."""

        def every(parameters: Iterable[Parameter]) -> Parameters:
            return frozenset(name for one in parameters for name in names(one))

        terms = (replace(term, reached=every(term.reached), direct=every(term.direct)) for term in self.terms)
        without = self.without_constants
        return replace(
            self,
            terms=tuple(terms),
            flow=GradientFlow([every(layer) for layer in self.flow.layers], self.flow.behind),
            gives={name: versions for one, versions in self.gives.items() for name in names(one)},
            unsure=every(self.unsure),
            constants=every(self.constants),
            without_constants=without and without.renamed(names),
        )


@dataclass(frozen=True, slots=True)
class OptimizerStep:
    """A step of an optimizer."""

    optimizer: int
    number: int
    """Counts the steps of this optimizer."""
    consumed: Calls
    """What it certainly uses."""


@dataclass(frozen=True, slots=True)
class Clearing:
    """Gradients are set to zero or None."""

    dropped: Calls
    """What is lost by it."""


Kind = Literal["backward", "step", "clearing", "clipping", "unscaling", "schedule"]


class Happened(NamedTuple):
    """Something that happens to gradients, or to the way they are used."""

    kind: Kind
    number: int
    """Counts calls, steps and clearings; of the others: the first optimizer that it concerns, or -1."""


Fate = Literal["consumed", "cleared", "left", "unknown"]


class Entry(NamedTuple):
    """What one backward call gives one parameter, and what becomes of it."""

    call: int
    parameter: Parameter
    versions: Versions
    certain: bool = True
    """Whether it surely comes to be."""
    steps: tuple[int, ...] = ()
    """The steps that use it: several where nothing clears it in between."""
    clearing: int | None = None
    """The first clearing that takes it away."""
    lent: bool = False
    """Whether other hands than steps and clearings may have got at the gradient: its fate is not known."""

    @property
    def stale(self) -> bool:
        """Whether the parameter has been moved since the graph used it."""
        return self.versions.forward is not None and self.versions.forward < self.versions.backward

    @property
    def fate(self) -> Fate:
        """What has become of it."""
        if self.lent or not self.certain:
            return "unknown"
        return "consumed" if self.steps else "left" if self.clearing is None else "cleared"


@dataclass(frozen=True, slots=True)
class Doubled:
    """A term of which a step consumes more than one entry."""

    step: int
    """The number of the step."""
    parameter: Parameter
    calls: tuple[BackwardCall, ...]
    """The calls that have differentiated it: one, if its own sum has it more than once."""
    count: int


@dataclass(frozen=True)
class Ledger:
    """The calls, the steps and the clearings of one program, in order."""

    calls: tuple[BackwardCall, ...]
    steps: tuple[OptimizerStep, ...]
    clearings: tuple[Clearing, ...] = ()
    order: tuple[Happened, ...] = ()
    """What happened one after the other, as far as it is known."""
    lent: Parameters = frozenset()
    """Parameters whose gradients are read or written by hand, or handed to code that is not seen."""

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """What each call gives each parameter, and its fate."""
        steps: dict[tuple[int, Parameter], list[int]] = {}
        clearings: dict[tuple[int, Parameter], int] = {}
        for number, step in enumerate(self.steps):
            for parameter, calls in step.consumed.items():
                for call in calls:
                    steps.setdefault((call, parameter), []).append(number)
        for number, clearing in enumerate(self.clearings):
            for parameter, calls in clearing.dropped.items():
                for call in calls:
                    clearings.setdefault((call, parameter), number)
        return tuple(
            Entry(
                call.index,
                parameter,
                versions,
                parameter not in call.unsure,
                tuple(steps.get((call.index, parameter), ())),
                clearings.get((call.index, parameter)),
                parameter in self.lent,
            )
            for call in self.calls
            for parameter, versions in call.gives.items()
        )

    @cached_property
    def stale(self) -> frozenset[int]:
        """The calls that go through weights from before a step."""
        return frozenset(entry.call for entry in self.entries if entry.stale)

    @cached_property
    def consumers(self) -> Mapping[int, Mapping[Parameter, int]]:
        """By call and parameter: the optimizer whose step was the first to consume its entry."""
        found: dict[int, dict[Parameter, int]] = {}
        for entry in self.entries:
            if entry.steps:
                found.setdefault(entry.call, {})[entry.parameter] = self.steps[entry.steps[0]].optimizer
        return found

    def doubled(self) -> Iterator[Doubled]:
        """What is consumed more than once by one step: for each step, of the first such parameter."""
        for number, step in enumerate(self.steps):
            found = (self._doubled(number, parameter, calls) for parameter, calls in step.consumed.items())
            yield from [one for one in found if one is not None][:1]

    def _doubled(self, step: int, parameter: Parameter, numbers: Sequence[int]) -> Doubled | None:
        calls = [self.calls[number] for number in numbers if 0 <= number < len(self.calls)]
        counts: Counter[int] = Counter()
        for call in calls:
            counts.update({term.number: term.count for term in call.terms if parameter in term.reached})
        twice = next((number for number, count in counts.items() if count > 1), None)
        if twice is None:
            return None
        guilty = tuple(call for call in calls if any(term.number == twice for term in call.terms))
        return Doubled(step, parameter, guilty, counts[twice])
