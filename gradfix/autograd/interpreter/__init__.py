"""Runs training code symbolically: statements and expressions in, events of the graph out.

One :class:`Run` is one way through the program. It executes statements in order on the values of
:mod:`gradfix.autograd.values`, so names, aliases, closures, containers and attributes mean what they
mean in Python. A condition that the values do not decide is decided by the run's *scenario*, the same
way each time the same question is asked of the same values. Statements return how control leaves them
(a *flow*), loops over unknown data run a few iterations.

To import one of the modules is to import them all, so that every statement and expression is registered.
"""

from gradfix.autograd.interpreter import (
    assignments,
    branches,
    calls,
    choices,
    comparisons,
    comprehensions,
    conditions,
    contexts,
    definitions,
    expressions,
    loops,
)
from gradfix.autograd.run import Run

__all__ = [
    "Run",
    "assignments",
    "branches",
    "calls",
    "choices",
    "comparisons",
    "comprehensions",
    "conditions",
    "contexts",
    "definitions",
    "expressions",
    "loops",
]
