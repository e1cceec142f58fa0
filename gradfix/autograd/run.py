"""How a run ends early, and what it notes while it is under way."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from gradfix.autograd.graph import Storage

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run


class Stopped(Exception):
    """The program raised or ended; unwinds the functions in progress."""


class Exited(Stopped):
    """The program ends itself."""


class Impossible(Stopped):
    """A way that only a further run has taken has led nowhere: what it reads has never been bound there."""


class Chain(NamedTuple):
    """The layers of a ``Sequential`` that is being called, with those of the ones within it."""

    site: ast.AST
    given: Storage | None
    """The memory of what it was called on."""
    born: int
    """The number of the first memory that only these layers can hold."""


def used_nothing(run: Run, node: ast.AST) -> None:
    """None is used as if it were something: subscripted, unpacked, computed with, asked for a method.

    Where only this way round leaves it at None, Python raises. In the main run something that cannot be seen
    must have replaced it.
    """
    first = run.scenario.first
    if first is not None and node not in first.nothing:
        raise Impossible
    run.nothing.add(node)
