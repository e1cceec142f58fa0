"""Mistakes that are planted into a repair: a harness proves it only if it refutes these (see ``alone.py``).

Each calls a helper that the harness gives to the file (``runtime/alone/planted.py``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

HELPERS = "__planted__"


class Planted(NamedTuple):
    """A repair with one more mistake."""

    kind: str
    line: int
    text: str


LOSS_DOUBLED, DROPPED, STALE, DETACHED = (
    "loss doubled",
    "micro-batch dropped",
    "stale forward",
    "term detached",
)
KINDS = (LOSS_DOUBLED, DROPPED, STALE, DETACHED)
WEIGHTS_MOVED, RESULT_DOUBLED = "weights moved", "result doubled"
"""The kinds for what differentiates nothing."""


def planted(text: str, first: int, last: int) -> Iterator[Planted]:
    """``text`` with one mistake between two lines, of each kind and at each place that it can be made at."""
    tree = ast.parse(text)
    losses: set[str] = set()
    sums: list[tuple[str, ast.BinOp]] = []
    for node in ast.walk(tree):
        if not first <= getattr(node, "lineno", 0) <= last:
            continue
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "backward"
        ):
            if node.args:
                continue  # What is differentiated is an argument, or has a gradient of its own.
            loss = node.func.value
            losses |= {one.id for one in ast.walk(loss) if isinstance(one, ast.Name)}
            yield _wrapped(LOSS_DOUBLED, text, loss, "doubled")
            yield _wrapped(STALE, text, loss, "stale")
            yield _wrapped(DROPPED, text, node.func, "every_other")
            if isinstance(loss, ast.BinOp):
                sums.append(("", loss))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            sums.append((ast.unparse(node.targets[0]), node.value))
    if not losses and not sums:
        yield from _into_evaluation(tree, text, first, last)
    for target, node in sums:
        if isinstance(node.op, (ast.Add, ast.Sub)) and (not target or target in losses):
            for side in (node.left, node.right):
                yield _wrapped(DETACHED, text, side, "cut")


def _into_evaluation(tree: ast.Module, text: str, first: int, last: int) -> Iterator[Planted]:
    """``text`` with weights that move where anything is called, and with results that count twice."""
    here = [node for node in ast.walk(tree) if first <= getattr(node, "lineno", 0) <= last]
    called = [
        n.func for n in here if isinstance(n, ast.Call) and isinstance(n.func, (ast.Name, ast.Attribute))
    ]
    results = [n.value for n in here if isinstance(n, ast.Return) and n.value is not None]
    if called:
        yield _wrapped(WEIGHTS_MOVED, text, called, "moved")
    if results:
        yield _wrapped(RESULT_DOUBLED, text, results, "doubled")


def _wrapped(kind: str, text: str, nodes: ast.expr | Sequence[ast.expr], helper: str) -> Planted:
    """``text`` with the value of each of some expressions given to a helper."""
    nodes = [nodes] if isinstance(nodes, ast.expr) else nodes
    lines = text.encode().splitlines(keepends=True)
    places = [(node.end_lineno or node.lineno, node.end_col_offset or 0, ")") for node in nodes]
    places += [(node.lineno, node.col_offset, f"{HELPERS}.{helper}(") for node in nodes]
    for line, column, what in sorted(places, key=lambda one: one[:2], reverse=True):
        held = lines[line - 1]
        lines[line - 1] = held[:column] + what.encode() + held[column:]
    return Planted(kind, nodes[0].lineno, b"".join(lines).decode())
