"""Whether a rewrite leaves a program worse off than it was, by what the model says of both versions.

An error can be silenced by cutting the graph in the wrong place: the program then runs, and a network is
never trained again. Or it is mended in one branch, and raised in another. Both are seen by running the
model on the rewritten program from every entry point from which it was run on the original.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from gradfix.autograd.program import EntryPoint, EntryPointKey, Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, steps

_Name = tuple[str, str]
"""An entry point, and what a backward in it differentiates."""


def worse(
    before: Program,
    after: Program,
    repairs: bool,
    further: bool,
    keys: Collection[EntryPointKey] | None = None,
) -> bool:
    """Whether ``after`` raises where ``before`` did not, in whatever branch, or starves a network.

    Raising includes what Python raises where an attribute or a key is not there yet, or where it is None.

    A rewrite that ``repairs`` must leave fewer failing backwards. Of runs that are made on demand those that
    nobody has asked for are made if ``further`` ones may show more. Only the entry points ``keys`` of the
    file are looked at, where the others are as they were.
    """
    old = [entry for entry in before.entry_points if keys is None or entry.key in keys]
    new = after.entry_points
    if _starves(old, new) or _fails(old, new, repairs, further):
        return True
    missed = _missed(new, further)
    if missed and missed - _missed(old, further):
        return True
    endangered = _endangered(new, further)
    return bool(endangered and endangered - _endangered(old, further))


def _runs(entry: EntryPoint, further: bool) -> Iterable[Run]:
    return entry.iter_runs() if further else entry.runs


def _fails(before: list[EntryPoint], after: list[EntryPoint], repairs: bool, further: bool) -> bool:
    every: Counter[_Name] = Counter()
    then: Counter[_Name] = Counter()
    for name, _, first in _failing(before, further):
        (then if first else every)[name] += 1
    now: Counter[_Name] = Counter()
    for name, _, first in _failing(after, further):
        # What fails after the program has ended does so only in the model.
        now[name] += first
        # It can only get worse: the other runs need not be made.
        if now - every or (repairs and not then - now):
            return True
    return False


def _endangered(entries: list[EntryPoint], further: bool) -> set[tuple[str, str]]:
    """The backwards that may go through a graph which an earlier one has freed, certain or not."""
    found: set[tuple[str, str]] = set()
    for entry in entries:
        for run in _runs(entry, further):
            for event in backwards(run):
                if any(
                    node.freed_by is not None
                    and node.freed_by.serial < event.serial
                    and node.raises_when_freed is not False
                    for node in event.visited
                ):
                    found.add((entry.name, ", ".join(ast.unparse(r) for r in event.receivers)))
    return found


def _missed(entries: list[EntryPoint], further: bool) -> set[tuple[str, str]]:
    """What some run asks for and does not find: ``net.state.detach()`` before there is a state."""
    return {missed for entry in entries for run in _runs(entry, further) for missed in run.missed}


def _failing(entries: list[EntryPoint], further: bool) -> Iterator[tuple[_Name, ast.AST, bool]]:
    """The backwards that fail in some run, each place once, and once more where it is the first of a run."""
    known: set[tuple[_Name, ast.AST, bool]] = set()
    for entry in entries:
        for run in _runs(entry, further):
            first = True
            for event in backwards(run):
                if event.failure is not None and event.certain:
                    name = entry.name, ", ".join(ast.unparse(r) for r in event.receivers)
                    for one in (name, event.site, False), (name, event.site, True):
                        if one not in known and (first or not one[2]):
                            known.add(one)
                            yield one
                    first = False


def _starves(before: list[EntryPoint], after: list[EntryPoint]) -> bool:
    """Whether some parameter block that certainly got gradient at a step before gets none at any after."""
    for entry, match in _pairs(before, after):
        then, now = _fed(entry), _fed(match)
        if len(then) == len(now) and any(old - new for old, new in zip(then, now)):
            return True
    return False


def _pairs(before: list[EntryPoint], after: list[EntryPoint]) -> Iterator[tuple[EntryPoint, EntryPoint]]:
    """The entry points that both versions have, by name; methods of two classes may share one."""
    for name in dict.fromkeys(entry.name for entry in before):
        same = ([entry for entry in entries if entry.name == name] for entries in (before, after))
        yield from zip(*same)


def _fed(entry: EntryPoint) -> list[set[int]]:
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
