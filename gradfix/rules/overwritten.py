"""Losses that are computed in each pass of a loop and backpropagated after it: only the last pass counts."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import NamedTuple

from gradfix.autograd.graph import Backward, Node, reachable_nodes
from gradfix.autograd.program import Program
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, first_step
from gradfix.core.syntax import LOOPS
from gradfix.rules.edits import line
from gradfix.rules.untrained import lost_losses

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Overwritten(NamedTuple):
    """A loss that nobody has used when it is computed again, and the one that is backpropagated."""

    lost: Node
    kept: Node
    backward: Backward


class Pass(NamedTuple):
    """What computes such a loss in each pass of a loop."""

    assignment: ast.Assign
    variable: str
    loop: ast.For


def overwritten(run: Run) -> dict[Hashable, Overwritten]:
    """By the place of the backward: losses that are computed several times, and used the last time alone."""
    found: dict[Hashable, Overwritten] = {}
    lost = lost_losses(run)
    cut = {node for _, node, _ in run.detached} if lost else set()  # They are taken for their values.
    for backward in backwards(run) if lost else ():
        if not backward.certain or not backward.accumulates or first_step(run, backward) is None:
            continue
        around = backward.loops
        for kept in (node for node in backward.roots if node.loops[: len(around)] == around):
            alike = (n for n in lost if n.site is kept.site and n.serial < kept.serial and n not in cut)
            earlier = next((node for node in alike if node.loops[: len(around)] == around), None)
            if earlier is not None:
                found.setdefault(backward.site, Overwritten(earlier, kept, backward))
    return found


def repeating(program: Program, one: Overwritten) -> Pass | None:
    """The loop each of whose passes computes a loss of other data, and uses it for nothing.

    A loop that ends early has found what it was looking for, and so may one that uses the loss.
    """
    for place in (one.kept.site, *(site for site, _ in reversed(one.kept.stack))):
        assigned = program.statement(place) if line(place) > 0 else None
        if not isinstance(assigned, ast.Assign) or assigned.value is not place:
            continue
        target = assigned.targets[0]
        loop = next((a for a in program.ancestors(place) if isinstance(a, (*LOOPS, *_SCOPES))), None)
        if not isinstance(target, ast.Name) or not isinstance(loop, ast.For) or len(assigned.targets) > 1:
            continue
        inside = set(ast.walk(loop))
        used = any(isinstance(n, ast.Name) and n.id == target.id and n is not target for n in inside)
        early = any(isinstance(n, (ast.Break, ast.Return)) for n in inside)
        if one.backward.site not in inside and not used and not early and _other_data(one, place, loop):
            return Pass(assigned, target.id, loop)
    return None


def _other_data(one: Overwritten, place: ast.expr, loop: ast.For) -> bool:
    """Whether each pass surely is about something else.

    Where one goes on from the result of another, what it is compared with has to differ: of a sequence with
    one label, only what is said at its end may be meant.
    """
    shared = reachable_nodes([(one.kept, True)]).keys() & reachable_nodes([(one.lost, True)]).keys()
    inside = set(ast.walk(loop))
    goes_on = any(not inside.isdisjoint((n.site, *(site for site, _ in n.stack))) for n in shared)
    compared: ast.expr = place
    if goes_on:
        position, _ = one.kept.graphless_operand or (None, None)
        if place is not one.kept.site or not isinstance(place, ast.Call) or position is None:
            return False
        if position >= len(place.args):
            return False
        compared = place.args[position]
    return not _names(compared).isdisjoint(_differing(loop))


def _differing(loop: ast.For) -> set[str]:
    """The variables that each pass of a loop binds to something of its own."""
    found = _names(loop.target)
    assigned = [statement for statement in loop.body if isinstance(statement, ast.Assign)]
    for statement in assigned:
        if not _names(statement.value).isdisjoint(found):
            found |= {name for target in statement.targets for name in _names(target)}
    return found


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
