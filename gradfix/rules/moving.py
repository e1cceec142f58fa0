"""Find the statements that recorded a graph, and compute later, or again, what a backward goes through.

Each way has its own precondition: a statement passes others that neither read nor bind what it binds, nor
bind what it reads; and an expression is computed again where nothing that it reads has been bound since.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable

from gradfix.autograd.graph import Backward, ModuleCall, Node
from gradfix.autograd.program import Program
from gradfix.core.codemod import Edit
from gradfix.core.syntax import walk
from gradfix.rules.edits import move, names_bound, names_read, targets_in


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


def behind(event: Backward, calls: Collection[ModuleCall]) -> set[Node]:
    """The nodes of a backward that belong to some network calls, or are computed from their results."""
    found: set[Node] = set()
    # Operands are always older than what is computed from them.
    for node in sorted(event.visited, key=lambda n: n.serial):
        if node.call in calls or any(edge.node in found for edge in node.edges):
            found.add(node)
    return found


def may_pass(statement: ast.stmt, others: Iterable[ast.stmt], moving: Collection[ast.stmt] = ()) -> bool:
    """Whether a statement means the same behind others, or before them; those that are ``moving`` too follow
    it."""
    read, bound = names_read(statement), names_bound(statement)
    return all(
        names_bound(other).isdisjoint(read | bound) and names_read(other).isdisjoint(bound)
        for other in others
        if other is not statement and other not in moving
    )


def bindings(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with what it is given; nothing for other statements."""
    match statement:
        case ast.Assign([ast.Tuple(targets) | ast.List(targets)], ast.Tuple(values)):
            return list(zip(targets, values)) if len(targets) == len(values) else []
        case ast.Assign([target], value):
            return [(target, value)]
    return []


def variables(program: Program, nodes: Iterable[ast.AST], use: type[ast.expr_context] = ast.Load) -> set[str]:
    """The variables, and the attributes, that are read or bound among some nodes."""
    named = (n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, use))
    return {program.segment(node) for node in named}


def computed_again(
    program: Program,
    statements: Iterable[ast.stmt],
    anchor: ast.stmt,
    wanted: set[str],
    text: Callable[[ast.expr], str | None],
) -> list[str] | None:
    """The code that makes at ``anchor`` what some statements before it have made, as far as it is wanted.

    ``text`` writes each expression, perhaps with other operands. None where nothing is wanted, or where the
    same expression may have another value there.
    """
    lines: list[str] = []
    for statement in sorted(statements, key=lambda s: s.lineno, reverse=True):
        code: list[str] = []
        for target, value in bindings(statement):
            names = {program.segment(n) for n in targets_in(target)}
            if wanted.isdisjoint(names):
                continue
            written = text(value)
            # What nobody asks for is not to be bound anew.
            if not wanted >= names or written is None or not _same_at(program, statement, value, anchor):
                return None
            code.append(f"{program.segment(target)} = {written}")
            wanted = wanted | variables(program, walk(value))
        lines = code + lines
    return lines or None


def _same_at(program: Program, statement: ast.stmt, value: ast.expr, anchor: ast.stmt) -> bool:
    """Whether nothing that an expression reads may have been bound since its statement."""
    function, read = program.function(statement), variables(program, walk(value))
    if function is not program.function(anchor):
        return names_read(value) <= {"self", "torch", "F", "nn"}
    since = (n for n in walk(function) if statement.lineno < getattr(n, "lineno", 0) < anchor.lineno)
    return read.isdisjoint(variables(program, since, ast.Store))


def moved_inside(program: Program, event: Backward, old: Node | None = None) -> tuple[str, list[Edit]] | None:
    """Compute anew, in each iteration of its loop or call of its function, what a backward goes through.

    ``old`` is a node from before; else it is the one that the backward raises at. Whole assignments move that
    stand before the loop, or before the definition of the function, in the same
    suite. Nobody else reads what they bind, and nothing in between changes what they read.

    Returns:
        What is done, in words, and the edits; ``None`` where that is not possible.
    """
    around = _repeated(program, event, old)
    if around is None:
        return None
    region, outside = around
    assert isinstance(region, (ast.For, ast.While, ast.FunctionDef))
    home, block = program.function(region), program.suite_around(region)
    early = statements(program, home, outside)
    if not early or not all(_names(one) and one in block for one in early):
        return None
    first, end = block.index(early[0]), block.index(region)
    bound = {name for one in early for name in _names(one)}
    read = set().union(*map(names_read, early))
    if first > end or not all(may_pass(one, block[block.index(one) + 1 : end], early) for one in early):
        return None
    known = {node for one in (*early, region) for node in walk(one)}
    if any(isinstance(n, ast.Name) and n.id in bound and n not in known for n in ast.walk(home)):
        return None  # Something else reads it, or binds it as well.
    if names_bound(region) & (bound | read):
        return None
    anchor = next((one for one in region.body if names_read(one) & bound), None)
    if anchor is None:
        return None
    names = ", ".join(dict.fromkeys(f"`{name}`" for one in early for name in _names(one)))
    where = (
        f"in every call of `{region.name}`" if isinstance(region, ast.FunctionDef) else "in every iteration"
    )
    return f"compute {names} {where}", [move(one, anchor, "before") for one in early]


def called_again(program: Program, event: Backward) -> ast.FunctionDef | None:
    """The function that walks a graph of before again, each time that it is called."""
    around = _repeated(program, event)
    return around[0] if around is not None and isinstance(around[0], ast.FunctionDef) and around[1] else None


def _repeated(
    program: Program, event: Backward, old: Node | None = None
) -> tuple[ast.stmt, list[Node]] | None:
    """The loop, or the function, that comes to a backward again, and the nodes that it finds there.

    Among these is ``old``, or what the backward raises at.
    """
    failure = event.failure
    node = old or (failure.node if failure is not None else None)
    for loop, _ in event.loops:
        if (
            node is not None
            and all(at is not loop for at, _ in node.loops)
            and isinstance(loop, (ast.For, ast.While))
        ):
            return loop, [n for n in event.visited if all(at is not loop for at, _ in n.loops)]
    if failure is None or failure.culprit is None:
        return None
    function = program.function(event.site)
    if not isinstance(function, ast.FunctionDef) or failure.culprit.site is not event.site:
        return None
    if any(isinstance(node, ast.arg) for node in ast.walk(function.args)):
        return None  # The graph may be another one in each call.
    return function, [n for n in event.visited if _within(program, function, n) is None]


def _names(statement: ast.stmt) -> list[str]:
    """The variables that an assignment binds, if it does nothing else."""
    targets = [inner for target, _ in bindings(statement) for inner in targets_in(target)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if len(names) == len(targets) else []
