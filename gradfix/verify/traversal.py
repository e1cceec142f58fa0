"""What a backward call goes through: the terms that its loss adds up, and the parameters behind each.

This runs in the script's process, beside torch. Nodes of autograd's graph are told from each other by a stamp
in their ``metadata``, which lives as long as they do, so no graph is kept alive by being looked at.

A loss is taken apart as far as it is a sum: ``a + 0.5 * b`` has the terms of ``a`` and of ``b``. What is no
sum any more is a term. Two calls with a term in common differentiate one loss twice, whatever it is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

NODES = 20_000
"""Nodes that are looked at in one run: a Python object is made for each."""
LAYERS = 2_000
"""Nodes of one graph that use parameters, which are held against each other."""
TERM, CALLS = "gradfix_term", "gradfix_calls"
"""The stamps on a node: its number as a term, the backward calls that have gone through it."""

SUMS = frozenset({"AddBackward0", "SubBackward0", "StackBackward0", "CatBackward0"})
"""Sums of what they are given, or lists of it."""
SCALES = frozenset({"MulBackward0", "DivBackward0"})
"""The same, where only one of two factors has a graph."""
SHAPES = frozenset(
    [f"{name}Backward0" for name in ("Neg", "Clone", "Alias", "ToCopy", "View", "ReshapeAlias")]
    + [f"{name}Backward{number}" for name in ("Squeeze", "Unsqueeze") for number in range(3)]
)
"""The same value with another sign, shape, type or memory."""
TOTALS = frozenset(f"{name}Backward{number}" for name in ("Sum", "Mean") for number in range(2))
"""Sums of the elements of one tensor: a sum of losses where that is a list of these."""


class Traversals:
    """Looks at the graphs of the backward calls of one run.

    Args:
        saves: Whether nodes of a type save anything for backward. What others share (a parameter's transpose,
            say) may be gone through as often as one likes.
    """

    def __init__(self, saves: Callable[[type], bool]) -> None:
        self.saves = saves
        self.nodes = 0
        self.terms = 0
        self.pending: list[Any] = []
        """The nodes of the call that is about to happen."""

    def gone(self, call: int) -> None:
        """Note that the call has happened that was looked at last."""
        for node in self.pending:
            node.metadata.setdefault(CALLS, set()).add(call)
        self.pending = []

    def look(
        self,
        roots: Iterable[torch.Tensor],
        owned: Mapping[int, list[tuple[int, int]]],
        seeded: bool = False,
    ) -> dict[str, Any] | None:
        """What a call goes through that is about to differentiate ``roots``.

        Args:
            roots: What is differentiated.
            owned: By the identity of a parameter, ``(optimizer, position)`` of everyone that owns it.
            seeded: Whether a vector is given whose product with the Jacobian is asked for. Of another vector
                it is another loss: no term of it is told from others.

        Returns:
            ``layers``: of each node that uses parameters, ``[[optimizer, position], ...]``; ``below``: by
            layer, those that come next towards the leaves; ``terms``: ``[number, count, [layer, ...]]`` of
            each term, with the layers that come first; ``again``: earlier calls that have gone through a part
            of the same graph. ``None`` where the graphs are too large.
        """
        starts = [root.grad_fn for root in roots if root.grad_fn is not None]
        nodes = in_order(starts, _following, NODES - self.nodes)
        self.nodes += len(nodes)
        self.pending = [node for node in nodes if self.saves(type(node))]
        layers = {node: used for node in nodes if (used := self.uses(node, owned))}
        if self.nodes >= NODES or len(layers) > LAYERS:
            return None
        number = {node: index for index, node in enumerate(layers)}
        ahead = _ahead(nodes, number)
        terms = []
        for node, count in _terms(starts).items():
            first = 1 << number[node] if node in number else ahead[node]
            terms.append([self.stamped(node, seeded), count, list(_bits(first))])
        return {
            "layers": list(layers.values()),
            "below": [list(_bits(ahead[node])) for node in layers],
            "terms": terms,
            "again": sorted({call for node in self.pending for call in node.metadata.get(CALLS, ())}),
        }

    @staticmethod
    def uses(node: Any, owned: Mapping[int, list[tuple[int, int]]]) -> list[tuple[int, int]]:
        """The parameters that a node uses itself."""
        return [
            place
            for leaf, _ in node.next_functions
            if leaf is not None and hasattr(leaf, "variable")
            for place in owned.get(id(leaf.variable), ())
        ]

    def stamped(self, node: Any, fresh: bool) -> int:
        """The number of a term, which it keeps, unless it is to have a ``fresh`` one of its own."""
        number: int = self.terms if fresh else node.metadata.setdefault(TERM, self.terms)
        self.terms += number == self.terms
        return number


def in_order(starts: Iterable[Any], following: Callable[[Any], list[Any]], most: int) -> list[Any]:
    """What can be come to, each before all that comes behind it; no more than about ``most``."""
    done: set[Any] = set()
    found: list[Any] = []
    waiting = [(start, False) for start in starts]
    while waiting and len(done) <= most:
        node, finished = waiting.pop()
        if finished:
            found.append(node)
        elif node not in done:
            done.add(node)
            waiting.append((node, True))
            waiting.extend((one, False) for one in following(node))
    return found[::-1]


def _following(node: Any) -> list[Any]:
    """The nodes that come next towards the leaves, but for these."""
    return [one for one, _ in node.next_functions if one is not None and not hasattr(one, "variable")]


def _ahead(nodes: Sequence[Any], number: Mapping[Any, int]) -> dict[Any, int]:
    """By node, the layers that come next towards the leaves, as the bits of a number."""
    ahead: dict[Any, int] = {}
    for node in reversed(nodes):
        ahead[node] = 0
        for one in _following(node):
            ahead[node] |= 1 << number[one] if one in number else ahead[one]
    return ahead


def _terms(starts: Sequence[Any]) -> dict[Any, int]:
    """The terms of a sum, and how often each is added or subtracted."""
    counts = Counter(starts)
    for node in in_order(starts, _summands, NODES):
        for one in _summands(node):
            counts[one] += counts[node]
    return {node: count for node, count in counts.items() if not _summands(node)}


def _summands(node: Any) -> list[Any]:
    """What a node adds up, if it does nothing else; nothing for a term."""
    name = node.name()
    following = _following(node)
    if name in SUMS or name in SHAPES or (name in SCALES and len(following) == 1):
        return following
    if name in TOTALS and any(one.name() in ("StackBackward0", "CatBackward0") for one in following):
        return following
    return []


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
