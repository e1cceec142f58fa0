"""Whether a rewrite leaves parameters without the gradient that they were meant to get.

An error can be silenced by cutting the graph in the wrong place: the program then runs, and a network is
never trained again. The model compares what every optimizer consumes before and after.
"""

from __future__ import annotations

from gradfix.autograd.questions import steps
from gradfix.autograd.training_step import Entry, Program


def starves(before: Program, after: Program) -> bool:
    """Whether some parameter block that certainly got gradient at a step before gets none at any after."""
    entries = {entry.name: entry for entry in after.entries}
    for entry in before.entries:
        match = entries.get(entry.name)
        if match is None or match.runs[0].scenario.main is not entry.runs[0].scenario.main:
            continue
        then, now = _fed(entry), _fed(match)
        if len(then) == len(now) and any(old - new for old, new in zip(then, now)):
            return True
    return False


def _fed(entry: Entry) -> list[set[int]]:
    """For every optimizer, in the order of construction, the owned blocks that ever got gradient."""
    run = entry.runs[0]
    fed: list[set[int]] = []
    for optimizer in run.optimizers:
        places = {leaf: number for number, leaf in enumerate(optimizer.state.owned())}
        fed.append(
            {
                places[leaf]
                for step in steps(run)
                if step.optimizer is optimizer.state
                for leaf, consumed in step.consumed.items()
                if any(sure for sure, _ in consumed.values())
            }
        )
    return fed
