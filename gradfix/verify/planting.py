"""Mistakes that are planted into a repair: a harness proves it only if it refutes these (see ``alone.py``).

Each calls a helper that the harness gives to the file (``runtime/alone/planted.py``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
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
    for target, node in sums:
        if isinstance(node.op, (ast.Add, ast.Sub)) and (not target or target in losses):
            for side in (node.left, node.right):
                yield _wrapped(DETACHED, text, side, "cut")


def _wrapped(kind: str, text: str, node: ast.expr, helper: str) -> Planted:
    """``text`` with the value of an expression given to a helper."""
    lines = text.encode().splitlines(keepends=True)
    ends = ((node.end_lineno or node.lineno, node.end_col_offset or 0, ")"),)
    for line, column, what in (*ends, (node.lineno, node.col_offset, f"{HELPERS}.{helper}(")):
        held = lines[line - 1]
        lines[line - 1] = held[:column] + what.encode() + held[column:]
    return Planted(kind, node.lineno, b"".join(lines).decode())
