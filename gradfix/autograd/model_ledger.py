"""The ledger of a run of the model: which loss gave a gradient to whom, and which steps consumed it.

What the recorder writes of a real run (``runtime/probe/traversal.py``), the model writes of its own. A
backward that raises is entered as if its graph had been kept: what it was meant to give is the question.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace

from gradfix.autograd.graph import (
    Backward,
    Clip,
    Event,
    Leaf,
    Node,
    OptimizerState,
    SchedulerStep,
    Step,
    Unscale,
    ZeroGrad,
    begins_in_unseen_code,
)
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import touched
from gradfix.core.ledger import (
    BackwardCall,
    Calls,
    Clearing,
    GradientFlow,
    Happened,
    Kind,
    Ledger,
    Parameter,
    Parameters,
    Term,
    Versions,
)
from gradfix.core.ledger import OptimizerStep as Consumed

SUMS = ("binary.Add", "binary.Sub", "augmented.Add", "augmented.Sub", "add", "sub", "stack", "cat", "neg")
DIFFERENCES = ("binary.Sub", "augmented.Sub", "sub")
SCALES = (
    "binary.Mult",
    "binary.Div",
    "augmented.Mult",
    "augmented.Div",
    "mul",
    "div",
)
"""Sums and multiples of what they are given; the latter where only one operand has a graph."""
TOTALS = ("sum", "mean")
"""Sums of the elements of one tensor: a sum of losses where that is a list of these."""
OVERLOADS = frozenset(
    "left right scalar other dim dtype mask list tensor tensors tensor_scalar int_or_slice".split()
)
"""The words by which the table of operators tells overloads of one operation apart."""


def ledger_of(run: Run, events: Iterable[Backward], steps: Iterable[Step]) -> Ledger:
    """What some backwards of a run gave, and what some steps and all clearings certainly do with it."""
    numbers = {event: index for index, event in enumerate(events)}
    owned = {leaf for optimizer in run.optimizers for leaf in optimizer.state.owned()}
    taken = {step: index for index, step in enumerate(steps)}
    moves: dict[Leaf, list[int]] = {}
    for step in taken:
        for leaf in step.consumed:
            moves.setdefault(leaf, []).append(step.serial)
    calls = tuple(_call(run, event, index, owned, moves) for event, index in numbers.items())
    turns: Counter[object] = Counter()
    optimizers = {one.state: index for index, one in enumerate(run.optimizers)}
    entered = []
    for step in taken:
        held = {
            leaf: [event for event, (sure, _) in by.items() if sure] for leaf, by in step.consumed.items()
        }
        index = optimizers.setdefault(step.optimizer, len(optimizers))
        entered.append(Consumed(index, turns[index], _numbered(held, numbers)))
        turns[index] += 1
    clearings = [event for event in run.events if isinstance(event, ZeroGrad)]
    known: dict[Event, int] = {}
    for some in (numbers, taken, clearings):
        known.update(zip(some, itertools.count()))
    return Ledger(
        _connected(calls, numbers),
        tuple(entered),
        tuple(Clearing(_numbered(event.dropped, numbers)) for event in clearings),
        tuple(_order(run, known, optimizers)),
        _lent(run, taken),
    )


def _numbered(held: Mapping[Leaf, Iterable[Backward]], numbers: Mapping[Backward, int]) -> Calls:
    """By parameter, the numbers of the backwards whose gradients it holds."""
    return {leaf: tuple(numbers[event] for event in by if event in numbers) for leaf, by in held.items()}


KINDS: dict[type[Event], Kind] = {
    Backward: "backward",
    Step: "step",
    ZeroGrad: "clearing",
    Clip: "clipping",
    Unscale: "unscaling",
    SchedulerStep: "schedule",
}


def _order(
    run: Run, numbers: Mapping[Event, int], optimizers: Mapping[OptimizerState, int]
) -> Iterator[Happened]:
    """What happens in a run."""
    for event in run.events:
        kind = KINDS.get(type(event))
        if kind is None:
            continue
        if event in numbers:
            yield Happened(kind, numbers[event])
        elif isinstance(event, Clip):
            # What no optimizer owns no step uses, clipped or not.
            clipped = {leaf for leaf, held in event.held.items() if held}
            owners = [index for state, index in optimizers.items() if not clipped.isdisjoint(state.owned())]
            if owners:
                yield Happened(kind, min(owners))
        elif isinstance(event, (Unscale, SchedulerStep)):
            yield Happened(kind, optimizers.get(event.optimizer, -1))


def _lent(run: Run, steps: Iterable[Step]) -> Parameters:
    """Parameters of which the model cannot tell for certain what becomes of their gradients."""
    doubted: set[Leaf] = set()
    for step in steps:
        doubted.update(leaf for leaf, by in step.consumed.items() if not all(sure for sure, _ in by.values()))
        if step.doubtful or not step.optimizer.groups_known:
            doubted.update(step.consumed, step.without_gradient)
    owned = (leaf for optimizer in run.optimizers for leaf in optimizer.state.owned())
    return frozenset(touched(run) | doubted | {leaf for leaf in owned if leaf.unknown_grad})


def _connected(calls: Iterable[BackwardCall], numbers: Iterable[Backward]) -> tuple[BackwardCall, ...]:
    """Calls, each with the earlier ones that have gone through a part of its graph that saves anything."""
    through: dict[Node, list[int]] = {}
    found = []
    for call, event in zip(calls, numbers):
        kept = [node for node, sure in event.visited.items() if sure and node.raises_when_freed]
        again = frozenset(earlier for node in kept for earlier in through.get(node, ()))
        for node in kept:
            through.setdefault(node, []).append(call.index)
        found.append(replace(call, again=again))
    return tuple(found)


def _call(
    run: Run, event: Backward, index: int, owned: set[Leaf], moves: Mapping[Leaf, list[int]]
) -> BackwardCall:
    """What one backward goes through; parameters that no optimizer owns count as data.

    By leaf, ``moves`` holds when a step has moved it, in order.
    """
    # What is frozen later was not frozen then.
    given = owned & event.reached.keys()
    using = {
        node: used
        for node in event.visited
        if (used := frozenset[Parameter](leaf for leaf, _, _ in node.leaves if leaf in given))
    }
    # What is used is older than what uses it.
    layers = sorted(using, key=lambda node: node.serial, reverse=True)
    number = {node: index for index, node in enumerate(layers)}
    behind = [frozenset(number[n] for n in _reached([node]) - {node} if n in number) for node in layers]
    flow = GradientFlow([using[node] for node in layers], behind)
    terms = []
    for node, multiples in terms_of(event).items():
        come_first = [number[one] for one in _first(node, using)]
        direct = frozenset[Parameter]().union(*(flow.layers[layer] for layer in come_first))
        scale = next(iter(multiples)) if len(multiples) == 1 else None
        count = sum(multiples.values())
        terms.append(Term(node.serial, count, flow.reached(come_first), direct, scale=scale))
    # The oldest use comes last.
    first_use = {leaf: node.serial for node in layers for leaf in using[node]}
    # A network that cannot be seen may have kept a graph from an earlier call.
    hidden = {leaf for node in layers if node.opaque for leaf in using[node]}
    gives: dict[Parameter, Versions] = {}
    for leaf in event.reached:
        at = moves.get(leaf, [])
        forward = None if leaf in hidden else bisect_left(at, first_use.get(leaf, event.serial))
        gives[leaf] = Versions(forward, bisect_left(at, event.serial))
    unseen = not event.visited or any(node.raises_when_freed is None for node in event.visited)
    sure = event.certain and not run.substituted and not any(map(begins_in_unseen_code, event.visited))
    unsure = frozenset(leaf for leaf, certain in event.reached.items() if not (sure and certain))
    followed = sure and not unseen and all(event.visited.values())
    return BackwardCall(index, "", tuple(terms), flow, gives=gives, unsure=unsure, followed=followed)


Factor = tuple[float, frozenset[tuple[object, int]]]
"""What a term is multiplied by: a number, and the other factors, each with its exponent."""
ONE: Factor = (1.0, frozenset())


def terms_of(event: Backward) -> dict[Node, dict[Factor, int]]:
    """The terms of the loss that a backward differentiates: how often each is added, by its factor."""
    found: dict[Node, dict[Factor, int]] = {}
    for (node, factor), count in multiples_of(event).items():
        found.setdefault(node, {})[factor] = count
    return found


def multiples_of(event: Backward) -> dict[tuple[Node, Factor], int]:
    """The same terms, by what each is multiplied by.

    A backward that is given a vector (``gradient=v``) has no terms here: with another vector it is another
    loss.
    """
    if event.has_vector:
        return {}
    counts = Counter((root, ONE) for root in event.roots)
    found: Counter[tuple[Node, Factor]] = Counter()
    while counts:
        # What is added up is older than its sum.
        term = max(counts, key=lambda one: one[0].serial)
        node, factor = term
        count = counts.pop(term)
        below = _summands(node)
        for at, one in enumerate(below):
            counts[one, _multiplied(factor, node, at)] += count
        if not below:
            found[term] += count
    return found


def summands(root: Node) -> dict[Node, None]:
    """The terms of a sum, whatever each is multiplied by."""
    seen, found = {root}, dict[Node, None]()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        below = _summands(node)
        if not below:
            found[node] = None
        waiting += [one for one in below if one not in seen]
        seen.update(below)
    return found


def addends(event: Backward) -> Iterator[Node]:
    """The terms of a loss, and those of the sums that it takes the mean or the sum of."""
    waiting = list(terms_of(event))
    while waiting:
        at = waiting.pop()
        if _is_total(at):
            waiting += summands(at.edges[0].node)
        else:
            yield at


def sums_in(event: Backward) -> dict[Node, None]:
    """The sums, and multiples of them, by which the terms of a loss are put together, or the elements of
    these."""
    found: dict[Node, None] = {}
    waiting = [] if event.has_vector else list(event.roots)
    while waiting:
        node = waiting.pop()
        below = [edge.node for edge in node.edges] if _is_total(node) else _summands(node)
        if below and node not in found:
            found[node] = None
            waiting += below
    return found


def _is_total(node: Node) -> bool:
    """Whether a node is the sum or the mean of one tensor."""
    return operation(node) in TOTALS and len(node.edges) == 1 and not node.leaves


def _multiplied(factor: Factor, by: Node, at: int) -> Factor:
    """A factor, multiplied by that of a node that scales its operands, for one of these."""
    number, others = factor
    computes = operation(by)
    if computes == "neg":
        return -number, others
    if computes in DIFFERENCES:
        minuend = at == 0 and (by.graphless_operand is None or by.graphless_operand[0] == 1)
        return number if minuend else -number, others
    if computes == "mean":
        return number, others | {(("mean", len(by.edges[0].node.edges)), 1)}
    if computes not in SCALES or by.graphless_operand is None:
        return factor
    power = -1 if operation(by).lower().endswith("div") else 1
    value = getattr(by.graphless_operand[1], "value", None)
    if isinstance(value, (int, float)) and value:
        return number * value**power, others
    powers = dict(others)
    powers[by.graphless_operand[1]] = powers.get(by.graphless_operand[1], 0) + power
    return number, frozenset(powers.items())


def operation(node: Node) -> str:
    """What a node computes, by whichever overload: one of its operands may be a number, or an index."""
    name, _, overload = node.op.rpartition(".")
    return name if overload in OVERLOADS else node.op


def _summands(node: Node) -> list[Node]:
    """What a node adds up or multiplies, if it does nothing else; nothing for a term."""
    if node.leaves or node.call is not None or not all(edge.certain for edge in node.edges):
        return []
    computes = operation(node)
    below = [edge.node for edge in node.edges]
    if computes in SUMS or (computes in SCALES and _scales(node)):
        return below
    if computes in TOTALS and any(one.op in ("stack", "cat") for one in below):
        return below
    return []


def _scales(node: Node) -> bool:
    """Whether a product or quotient is a multiple of the one operand that has a graph: ``1 / x`` is none."""
    inverted = operation(node).lower().endswith("div") and (
        node.graphless_operand is None or node.graphless_operand[0] == 0
    )
    return len(node.edges) == 1 and not inverted


def in_common(events: Collection[Backward], *, weighed: bool = True) -> dict[Hashable, list[Backward]]:
    """The terms that several backwards differentiate, or one of them more than once.

    Unless ``weighed``, a term with another factor counts as another term.
    """
    found: dict[Hashable, list[Backward]] = {}
    for event in events:
        for (node, factor), count in multiples_of(event).items():
            term = node if weighed else (node, factor)
            found.setdefault(term, []).extend(itertools.repeat(event, count))
    return {term: those for term, those in found.items() if len(those) > 1}


def _reached(starts: Iterable[Node]) -> set[Node]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        for edge in waiting.pop().edges:
            if edge.node not in found:
                found.add(edge.node)
                waiting.append(edge.node)
    return found


def _first(start: Node, using: Collection[Node]) -> set[Node]:
    """The first nodes that use parameters: those reached without going through another such node."""
    found: set[Node] = set()
    seen = {start}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node in using:
            found.add(node)
            continue
        for edge in node.edges:
            if edge.node not in seen:
                seen.add(edge.node)
                waiting.append(edge.node)
    return found
