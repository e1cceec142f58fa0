"""Questions about nodes of autograd's graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any


def operation(node: Any) -> str:
    """What autograd calls the operation of a graph node: ``Mul``, ``CopySlices``."""
    return re.sub(r"Backward\d*$", "", node.name().rpartition("::")[2])


def is_leaf(node: Any) -> bool:
    """Whether a node of the graph is where a leaf accumulates its gradient."""
    return hasattr(node, "variable")


def beside(node: Any) -> Iterator[Any]:
    """What goes into a node, a transposed weight being that weight (``Linear``)."""
    for before, _ in node.next_functions:
        if before is not None:
            yield before
            if len(before.next_functions) == 1 and before.next_functions[0][0] is not None:
                yield before.next_functions[0][0]


def leading_to(nodes: dict[Any, None], wanted: set[Any]) -> set[Any]:
    """Those of ``nodes`` that come to one of the ``wanted``, these included."""
    into: dict[Any, list[Any]] = {}
    for node in nodes:
        for after, _ in node.next_functions:
            into.setdefault(after, []).append(node)
    found = set(wanted)
    waiting = list(wanted)
    while waiting:
        for node in into.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def leaves_beside(node: Any) -> Iterator[Any]:
    """The leaf tensors that go into ``node``, or a view of them (``Linear`` saves the transposed weight)."""
    for before, _ in node.next_functions:
        depth = 0
        while before is not None and depth < 4:
            if hasattr(before, "variable"):
                yield before.variable
                break
            if len(before.next_functions) != 1:
                break
            before, depth = before.next_functions[0][0], depth + 1
