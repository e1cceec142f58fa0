"""The ledger of a run of the model: which loss gave a gradient to whom, and which steps consumed it.

What the recorder writes of a real run (``runtime/probe/traversal.py``), the model writes of its own. A
backward that raises is entered as if its graph had been kept: what it was meant to give is the question.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping

from gradfix.autograd.graph import Backward, Leaf, Node, Step
from gradfix.autograd.run import Run
from gradfix.core.ledger import BackwardCall, GradientFlow, Ledger, Parameter, Parameters, Term
from gradfix.core.ledger import OptimizerStep as Consumed

SUMS = ("binary.Add", "binary.Sub", "augmented.Add", "augmented.Sub", "add", "sub", "stack", "cat", "neg")
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
    """What some backwards of a run gave, and which of some steps consumed it for certain."""
    numbers = {event: index for index, event in enumerate(events)}
    owned = {leaf for optimizer in run.optimizers for leaf in optimizer.state.owned()}
    taken = list(steps)
    moved: dict[Parameter, list[int]] = {}
    for step in taken:
        for leaf in step.consumed:
            moved.setdefault(leaf, []).append(step.serial)
    calls = tuple(_call(event, index, owned, moved) for event, index in numbers.items())
    step_numbers: Counter[object] = Counter()
    optimizers = {one.state: index for index, one in enumerate(run.optimizers)}
    entered = []
    for step in taken:
        consumed: dict[Parameter, tuple[int, ...]] = {
            leaf: tuple(numbers[event] for event, (sure, _) in held.items() if sure and event in numbers)
            for leaf, held in step.consumed.items()
        }
        index = optimizers.setdefault(step.optimizer, len(optimizers))
        entered.append(Consumed(index, step_numbers[index], consumed))
        step_numbers[index] += 1
    return Ledger(calls, tuple(entered))


def _call(
    event: Backward, index: int, owned: set[Leaf], moved: Mapping[Parameter, list[int]]
) -> BackwardCall:
    """What one backward goes through; parameters that no optimizer owns count as data.

    By leaf, ``moved`` holds when a step has moved it, in order.
    """
    using = {node: used for node in event.visited if (used := _leaves(node, owned))}
    # What is used is older than what uses it.
    layers = sorted(using, key=lambda node: node.serial, reverse=True)
    number = {node: index for index, node in enumerate(layers)}
    behind = [frozenset(number[n] for n in _reached([node]) - {node} if n in number) for node in layers]
    flow = GradientFlow([using[node] for node in layers], behind)
    terms = []
    for node, count in terms_of(event).items():
        first = [number[one] for one in _first(node, using)]
        direct = frozenset[Parameter]().union(*(flow.layers[layer] for layer in first))
        terms.append(Term(node.serial, count, flow.reached(first), direct))
    stale = frozenset(
        leaf
        for node, used in using.items()
        for leaf in used
        if any(node.serial < serial < event.serial for serial in moved.get(leaf, ()))
    )
    return BackwardCall(index, "", tuple(terms), flow, stale=stale)


Factor = tuple[float, frozenset[tuple[object, int]]]
"""What a term is multiplied by: a number, and the other factors, each with its exponent."""
ONE: Factor = (1.0, frozenset())


def terms_of(event: Backward) -> dict[Node, int]:
    """The terms of the loss that a backward differentiates, each with how often it is added or subtracted."""
    found: Counter[Node] = Counter()
    for (node, _), count in multiples_of(event).items():
        found[node] += count
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
        factor = _multiplied(factor, node) if below else factor
        for one in below:
            counts[one, factor] += count
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


def sums_in(event: Backward) -> dict[Node, None]:
    """The sums, and multiples of them, by which the terms of a loss are put together."""
    found: dict[Node, None] = {}
    waiting = [] if event.has_vector else list(event.roots)
    while waiting:
        node = waiting.pop()
        below = _summands(node)
        if below and node not in found:
            found[node] = None
            waiting += below
    return found


def _multiplied(factor: Factor, by: Node) -> Factor:
    """A factor, multiplied by that of a node that scales its operand."""
    number, others = factor
    if operation(by) == "neg":
        return -number, others
    if operation(by) not in SCALES or by.graphless_operand is None:
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
        terms: Collection[tuple[Hashable, int]] = (terms_of if weighed else multiples_of)(event).items()
        for term, count in terms:
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


def _leaves(node: Node, owned: set[Leaf]) -> Parameters:
    return frozenset(leaf for leaf, _, _ in node.leaves if leaf.requires is not False and leaf in owned)
