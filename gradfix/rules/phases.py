"""Two phases of one iteration, each with a backward and a step of its own, in the other order.

    d_loss.backward(); optimizer_D.step()         g_loss.backward(); optimizer_G.step()
    g_loss.backward(); optimizer_G.step()    =>   d_loss.backward(); optimizer_D.step()

Statements of the first phase that compute what the second one reads stay where they are; the others move
behind the second one. Whether the program is right then is for the model to say.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from gradfix.autograd.program import Program
from gradfix.core.codemod import Edit
from gradfix.core.syntax import walk
from gradfix.rules.edits import line, move, names_bound, names_read

LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


def swap_phases(
    program: Program, events: Collection[ast.AST], first_step: ast.AST, second_step: ast.AST
) -> list[Edit] | None:
    """The moves that put the first phase behind the second one.

    Args:
        program: The program.
        events: What belongs to the first phase: its forwards, its backwards, what clears its gradients.
        first_step: The step with which the first phase ends.
        second_step: The step with which the second one does.
    """
    if min(map(line, (first_step, second_step))) <= 0:
        return None
    end, last = program.statement(first_step), program.statement(second_step)
    block = program.suite_around(end)
    if last not in block or block.index(last) <= block.index(end):
        return None
    first, second = block[: block.index(end) + 1], block[block.index(end) + 1 : block.index(last) + 1]
    own = [statement for statement in first if not set(walk(statement)).isdisjoint(events)]
    if not own:
        return None
    first = first[first.index(own[0]) :]
    wanted = _taken(second)
    moved: list[ast.stmt] = []
    for statement in reversed(first):
        if names_bound(statement) & wanted:
            wanted |= names_read(statement)
            if statement in own:
                return None  # The second phase reads what the first one has made of the networks.
        else:
            moved.append(statement)
    between = [statement for statement in first if statement not in moved] + second
    if any(_apart(statement) for statement in (*moved, *between)):
        return None
    moved.reverse()
    rebound, bound = (set().union(*map(names_bound, phase)) for phase in (second, moved))
    inside = {node for statement in (*first, *second) for node in walk(statement)}
    outside = {
        node.id
        for node in walk(program.function(end))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in inside
    }
    for place, statement in enumerate(first):
        after = (other for other in first[place + 1 :] if other not in moved)
        if statement in moved and any(names_read(statement) & names_bound(other) for other in after):
            return None  # It would read what is computed after it.
    # What both give a value has another one at the end now.
    if _taken(moved) & rebound or rebound & bound & outside:
        return None
    return [move(statement, last, "after") for statement in moved]


def _taken(statements: Iterable[ast.stmt]) -> set[str]:
    """The variables of which some statements, one after the other, read the values from before."""
    taken: set[str] = set()
    bound: set[str] = set()
    for statement in statements:
        added = {node.target for node in walk(statement) if isinstance(node, ast.AugAssign)}
        taken |= (names_read(statement) | {one.id for one in added if isinstance(one, ast.Name)}) - bound
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            bound |= names_bound(statement)
    return taken


def _apart(statement: ast.stmt) -> bool:
    """Whether a statement leaves the block, or stores where its readers are not seen."""
    return any(
        isinstance(node, LEAVING)
        or (isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load))
        for node in walk(statement)
    )
