"""What the driver of a step alone is made of: it imports this package as ``step_alone``.

A driver calls one function or class of a file whose program cannot run, with what nobody hands it made up:

===========  ===========================================================================================
`loading`    the file, statement by statement; what it cannot import is absent, and stops the run where used
`given`      data, settings and callables: values that their use gives a shape
`networks`   networks whose source nobody sees, in several kinds, and optimizers over them
`by_hand`    the same driver, outside of gradfix
===========  ===========================================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .given import Given, Switch, make, number, returns
from .loading import load
from .networks import choose, network, optimizer

__all__ = ["Given", "load", "make", "network", "number", "optimizer", "returns", "turns"]

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
