"""Whether a rewrite leaves a program worse off than it was, by what the model says of both versions.

An error can be silenced by cutting the graph in the wrong place: the program then runs, and a network is
never trained again. Or it is mended in one branch, and raised in another. Both are seen by running the
model on the rewritten program in every way in which it was run on the original.
"""

from __future__ import annotations

import ast
from collections import Counter

from gradfix.autograd.questions import backwards, steps
from gradfix.autograd.training_step import Entry, Program


def worse(before: Program, after: Program, repairs: bool) -> bool:
    """Whether ``after`` raises where ``before`` did not, in whatever branch.

    A rewrite that ``repairs`` must leave fewer failing backwards.
    """
    then, now = _failing(before), _failing(after)
    if now - then or (repairs and then and now == then):
        return True
    return bool(_endangered(after) - _endangered(before))


def _endangered(program: Program) -> set[tuple[str, str]]:
    """The backwards that may go through a graph which an earlier one has freed, certain or not."""
    found: set[tuple[str, str]] = set()
    for entry in program.entries:
        for run in entry.every():
            for event in backwards(run):
                if any(
                    node.freed_by is not None
                    and node.freed_by.serial < event.serial
                    and node.saves is not False
                    for node in event.visited
                ):
                    found.add((entry.name, ", ".join(ast.unparse(r) for r in event.receivers)))
    return found


def _failing(program: Program) -> Counter[tuple[str, str]]:
    """The backwards that fail in some run: what they differentiate, counted by place."""
    places: dict[tuple[str, str, ast.AST], None] = {}
    for entry in program.entries:
        for run in entry.every():
            for event in backwards(run):
                if event.failure is not None and event.certain:
                    text = ", ".join(ast.unparse(r) for r in event.receivers)
                    places[entry.name, text, event.site] = None
    return Counter((name, text) for name, text, _ in places)


def starves(before: Program, after: Program) -> bool:
    """Whether some parameter block that certainly got gradient at a step before gets none at any after."""
    entries = {entry.name: entry for entry in after.entries}
    for entry in before.entries:
        match = entries.get(entry.name)
        if match is None:
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
