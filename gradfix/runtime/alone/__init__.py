"""What the driver of a step alone is made of: it imports this package as ``step_alone``.

A driver calls one function or class of a file whose program cannot run, with what nobody hands it made up:

===========  ===========================================================================================
`loading`    the file, statement by statement; what it cannot import is absent, and stops the run where used
`given`      data, settings and callables: values that their use gives a shape
`networks`   networks whose source nobody sees, in several kinds, and optimizers over them
`program`    a script of the project, whose arguments are made up
`afterwards` a step that shows what an evaluation has returned and left behind
`bygone`     interfaces that Python, numpy and torch no longer have
`gaps`       what failures tell is lacking: modules, statements that fail, methods that prepare others
`by_hand`    the same driver, outside of gradfix
===========  ===========================================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..standins import context
from . import gaps
from .afterwards import afterwards
from .gaps import setup
from .given import Given, Switch, make, number, returns
from .loading import load
from .networks import choose, network, optimizer
from .program import other_words, program

__all__ = [
    "Given",
    "afterwards",
    "load",
    "make",
    "network",
    "number",
    "optimizer",
    "program",
    "returns",
    "setup",
    "turns",
]

NAME = "step_alone"
"""The name by which a driver imports this package."""
TURNS = 24
"""How often the entry is called, unless the run has seen enough before."""


def turns() -> Iterator[int]:
    """The numbers of the calls of the entry."""
    for turn in range(TURNS):
        Switch.turn = turn
        yield turn


def provide() -> None:
    """Let drivers import this package; their arguments are theirs, and not those of the file."""
    choose(sys.argv[1:])
    del sys.argv[1:]
    sys.modules[NAME] = sys.modules[__name__]
    context.run().advisers.append(gaps.advise)
    context.run().at_end.append(other_words)
