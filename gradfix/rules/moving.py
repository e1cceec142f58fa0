"""Find the statements that recorded a graph, and move them to where a backward repeatedly goes through it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradfix.autograd.graph import Backward, Node
from gradfix.autograd.program import Program
from gradfix.autograd.relevance import walk
from gradfix.core.codemod import Edit
from gradfix.rules.edits import move, names_bound, names_read


def statements(program: Program, home: ast.AST, nodes: Iterable[Node]) -> list[ast.stmt]:
    """The statements that computed ``nodes``, in order: those of the function ``home``, where it did."""
    found = {program.statement(cause_of(program, home, n)): None for n in nodes}
    return sorted(found, key=lambda s: s.lineno)


def cause_of(program: Program, home: ast.AST, node: Node) -> ast.AST:
    """Where the code caused a node: the call of the network, or of the function that computed it."""
    within = _within(program, home, node)
    return within if within is not None else node.call.site if node.call is not None else node.site


def _within(program: Program, home: ast.AST, node: Node) -> ast.expr | None:
    """The expression of a function that caused a node, if one did."""
    site, stack = (node.call.site, node.call.stack) if node.call is not None else (node.site, node.stack)
    for one in (site, *(call for call, _ in reversed(stack))):
        if isinstance(one, ast.expr) and program.function(one) is home:
            return one
    return None


def moved_inside(program: Program, event: Backward) -> tuple[str, list[Edit]] | None:
    """Compute anew, in each iteration of its loop or call of its function, what a backward goes through.

    Whole assignments move that stand before the loop, or before the definition of the function, in the same
    suite. Nobody else reads what they bind, and nothing in between changes what they read.

    Returns:
        What is done, in words, and the edits; ``None`` where that is not possible.
    """
    around = _repeated(program, event)
    if around is None:
        return None
    region, outside = around
    assert isinstance(region, (ast.For, ast.While, ast.FunctionDef))
    home, block = program.function(region), program.suite_around(region)
    early = statements(program, home, outside)
    if not early or any(_name(one) is None or one not in block for one in early):
        return None
    first, end = block.index(early[0]), block.index(region)
    between = [one for one in block[first:end] if one not in early]
    bound = {name for one in early if (name := _name(one)) is not None}
    read = set().union(*map(names_read, early))
    if first > end or any(names_bound(one) & (read | bound) or names_read(one) & bound for one in between):
        return None
    known = {node for one in (*early, region) for node in walk(one)}
    if any(isinstance(n, ast.Name) and n.id in bound and n not in known for n in ast.walk(home)):
        return None  # Something else reads it, or binds it as well.
    if names_bound(region) & (bound | read):
        return None
    anchor = next((one for one in region.body if names_read(one) & bound), None)
    if anchor is None:
        return None
    names = ", ".join(dict.fromkeys(f"`{_name(one)}`" for one in early))
    where = (
        f"in every call of `{region.name}`" if isinstance(region, ast.FunctionDef) else "in every iteration"
    )
    return f"compute {names} {where}", [move(one, anchor, "before") for one in early]


def called_again(program: Program, event: Backward) -> ast.FunctionDef | None:
    """The function that walks a graph of before again, each time that it is called."""
    around = _repeated(program, event)
    return around[0] if around is not None and isinstance(around[0], ast.FunctionDef) and around[1] else None


def _repeated(program: Program, event: Backward) -> tuple[ast.stmt, list[Node]] | None:
    """The loop, or the function, that comes to a backward again, and the nodes that it finds there."""
    failure = event.failure
    if failure is None or failure.node is None or failure.culprit is None:
        return None
    for loop, _ in event.loops:
        if all(at is not loop for at, _ in failure.node.loops) and isinstance(loop, (ast.For, ast.While)):
            return loop, [n for n in event.visited if all(at is not loop for at, _ in n.loops)]
    function = program.function(event.site)
    if not isinstance(function, ast.FunctionDef) or failure.culprit.site is not event.site:
        return None
    if any(isinstance(node, ast.arg) for node in ast.walk(function.args)):
        return None  # The graph may be another one in each call.
    return function, [n for n in event.visited if _within(program, function, n) is None]


def _name(statement: ast.stmt) -> str | None:
    """The variable that an assignment binds, if it does nothing else."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    (target,) = statement.targets
    return target.id if isinstance(target, ast.Name) else None
