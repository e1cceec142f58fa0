"""The ledger of gradients: which parameters each backward call gave gradients, and which steps used them.

Right training keeps one rule: at every step, each parameter that the optimizer owns receives exactly one
entry of each loss that is meant for it, computed with the weights that the step moves, and no other. What
breaks it is looked for here; which loss is *meant* for whom is the subject of :mod:`gradfix.core.intent`.

Plain data, standard library only. Parameters are whatever tells one from the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Parameter = Hashable
Parameters = frozenset[Parameter]


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
    stale: Parameters = frozenset()
    """The parameters that have been updated since the graph used them."""
    constants: Parameters = frozenset()
    """Those that it depends on by way of what its losses take for a constant: the target of a criterion, what
    weighs the likelihood of something that was drawn by it."""
    without_constants: BackwardCall | None = None
    """The same call if its losses did not depend on these constants, where there are any."""

    @property
    def reached(self) -> Parameters:
        """The parameters that the loss depends on."""
        return frozenset().union(*(term.reached for term in self.terms))


@dataclass(frozen=True, slots=True)
class OptimizerStep:
    """A step of an optimizer."""

    optimizer: int
    number: int
    """Counts the steps of this optimizer."""
    consumed: Mapping[Parameter, tuple[int, ...]]
    """By parameter: the calls whose gradients it held."""


@dataclass(frozen=True, slots=True)
class Doubled:
    """A term of which a step consumes more than one entry."""

    step: OptimizerStep
    parameter: Parameter
    calls: tuple[BackwardCall, ...]
    """The calls that have differentiated it: one, if its own sum has it more than once."""
    count: int


@dataclass(frozen=True)
class Ledger:
    """The calls and the steps of one program, in order."""

    calls: tuple[BackwardCall, ...]
    steps: tuple[OptimizerStep, ...]

    @cached_property
    def consumers(self) -> Mapping[int, Mapping[Parameter, int]]:
        """By call and parameter: the optimizer whose step was the first to consume its entry."""
        found: dict[int, dict[Parameter, int]] = {}
        for step in self.steps:
            for parameter, calls in step.consumed.items():
                for call in calls:
                    found.setdefault(call, {}).setdefault(parameter, step.optimizer)
        return found

    def doubled(self) -> Iterator[Doubled]:
        """What is consumed more than once by one step: for each step, of the first such parameter."""
        for step in self.steps:
            found = (self._doubled(step, parameter, calls) for parameter, calls in step.consumed.items())
            yield from [one for one in found if one is not None][:1]

    def _doubled(self, step: OptimizerStep, parameter: Parameter, numbers: Sequence[int]) -> Doubled | None:
        calls = [self.calls[number] for number in numbers if 0 <= number < len(self.calls)]
        counts: Counter[int] = Counter()
        for call in calls:
            counts.update({term.number: term.count for term in call.terms if parameter in term.reached})
        twice = next((number for number, count in counts.items() if count > 1), None)
        if twice is None:
            return None
        guilty = tuple(call for call in calls if any(term.number == twice for term in call.terms))
        return Doubled(step, parameter, guilty, counts[twice])
