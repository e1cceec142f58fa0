"""The events of a run by line, in a form in which two versions of a file can be compared.

A finding may be gone since a rewrite has mended it, or although none has: the same steps find the same
gradients at its lines, and yet no codemod speaks of it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

from gradfix.autograd.graph import Backward, Clip, Event, InPlaceChange, Leaf, Node, Step, ZeroGrad
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run

Renumber = Callable[[int], int]
"""Gives a line the number that it goes by."""


def events_by_line(
    program: Program, lines: Collection[int], renumber: Renumber, *, computed: bool
) -> frozenset[Hashable]:
    """What happens at ``lines`` in any run: what is differentiated, consumed, cleared, changed.

    Args:
        program: Of one version of the file.
        lines: By the numbers that they have in this version.
        renumber: To the numbers of the version that this one is compared with.
        computed: Whether to tell also what is computed there.
    """
    found: set[Hashable] = set()
    for entry in program.entry_points:
        for run in entry.runs:
            teller = _Description(run, renumber)
            found.update(teller.event(one) for one in run.events if _line(one.site) in lines)
            if computed:
                found.update(teller.node(one) for one in run.nodes if _line(one.site) in lines)
                found.update(("called", one.training) for one in run.module_calls if _line(one.site) in lines)
    return frozenset(found)


def _line(site: ast.AST) -> int:
    return getattr(site, "lineno", 0)


class _Description:
    """Says what happens in one run, by names that the runs of both versions have."""

    def __init__(self, run: Run, renumber: Renumber) -> None:
        self._renumber = renumber
        self._owned: dict[Leaf, list[tuple[int, int]]] = {}
        for number, optimizer in enumerate(run.optimizers):
            for place, leaf in enumerate(optimizer.state.owned()):
                self._owned.setdefault(leaf, []).append((number, place))

    def node(self, node: Node) -> Hashable:
        return "computed", node.op, self._names(leaf for leaf, _, _ in node.leaves), bool(node.edges)

    def event(self, event: Event) -> Hashable:
        described: tuple[Hashable, ...] = ()
        if isinstance(event, Backward):
            reached = frozenset((self._name(leaf), sure) for leaf, sure in event.reached.items())
            roots = ", ".join(map(ast.unparse, event.receivers))
            failure = event.failure and event.failure.kind
            described = (
                roots,
                event.retain,
                event.create_graph,
                event.certain,
                failure,
                event.lost is None,
                reached,
            )
        elif isinstance(event, Step):
            described = event.doubtful, self._names(event.without_gradient), self._gradients(event.consumed)
        elif isinstance(event, ZeroGrad):
            unused = ((leaf, b) for leaf, held in event.dropped.items() for b in held if not held[b].consumed)
            lost = frozenset((self._name(leaf), self._place(backward)) for leaf, backward in unused)
            described = self._names(event.leaves), self._gradients(event.dropped), lost
        elif isinstance(event, Clip):
            described = event.doubtful, self._gradients(event.held)
        elif isinstance(event, InPlaceChange):
            described = event.doubtful, event.what, event.failure and event.failure.kind
        return type(event).__name__, described

    def _place(self, event: Event) -> int:
        return self._renumber(_line(event.site))

    def _name(self, leaf: Leaf) -> Hashable:
        return leaf.label, tuple(self._owned.get(leaf, ()))

    def _names(self, leaves: Iterable[Leaf]) -> frozenset[Hashable]:
        return frozenset(map(self._name, leaves))

    def _gradients(self, of: Mapping[Leaf, Iterable[Backward]]) -> frozenset[Hashable]:
        """Parameters, each with the backward calls whose gradients it holds, and how often it holds them."""
        return frozenset(
            (self._name(leaf), frozenset(Counter(map(self._place, held)).items()))
            for leaf, held in of.items()
        )
