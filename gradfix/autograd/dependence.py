"""Whether anything that autograd does depends on a condition: a static slice of the function around it.

By control, what stands under the condition does. By data, what is computed of the variables that it sets.
Where the slice ends in plain data (the best score so far, a counter for a report), both outcomes train alike.
Variables are told apart by their names, the order of statements does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradfix.autograd.relevance import FunctionDefinition, Relevance, suites
from gradfix.core.syntax import walk


def sets_only(statement: ast.stmt, assigned: set[str]) -> bool:
    """Whether a statement does nothing to others than to set the names that are added to ``assigned``."""
    match statement:
        case ast.Expr() | ast.Pass():
            return True
        case ast.Assign():
            return all(_base(target, assigned) for target in statement.targets)
        case ast.AnnAssign() | ast.AugAssign():
            return _base(statement.target, assigned)
        case ast.For():
            inner = [*statement.body, *statement.orelse]
            return _base(statement.target, assigned) and all(sets_only(s, assigned) for s in inner)
        case ast.With():
            targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
            return all(_base(target, assigned) for target in targets) and all(
                sets_only(s, assigned) for s in statement.body
            )
        case ast.If():
            return all(sets_only(s, assigned) for s in [*statement.body, *statement.orelse])
        case _:
            return False


def _base(target: ast.expr, assigned: set[str]) -> bool:
    """Note the variables that an assignment to ``target`` changes; whether they can be told."""
    match target:
        case ast.Tuple() | ast.List():
            return all(_base(inner, assigned) for inner in target.elts)
        case ast.Starred() | ast.Subscript() | ast.Attribute():
            return _base(target.value, assigned)
        case ast.Name():
            assigned.add(target.id)
            return True
        case _:
            return False


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def reaches_events(
    names: set[str], site: ast.If, home: ast.Module | FunctionDefinition, relevance: Relevance
) -> bool:
    """Whether what a function does with ``names``, which a condition in it sets, may matter to autograd."""
    sliced = set(names)
    known = 0
    while known < len(sliced):
        known = len(sliced)
        if "self" in sliced or any(_matters(s, site, sliced, relevance) for s in home.body):
            return True
    return False


def _matters(statement: ast.stmt, site: ast.If, sliced: set[str], relevance: Relevance) -> bool:
    """Whether autograd may go by ``sliced`` names in a statement; if not, those are added that it computes
    of them."""
    if statement is site:
        return False
    inner = list(suites(statement))
    if isinstance(statement, DEFINITIONS):
        return _reads([statement], sliced)
    if inner:
        heads = [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]
        if _reads(heads, sliced) and not _only_sets(statement, sliced, relevance):
            return True
        return any(_matters(s, site, sliced, relevance) for s in inner)
    return _reads([statement], sliced) and not _only_sets(statement, sliced, relevance)


def _only_sets(statement: ast.stmt, sliced: set[str], relevance: Relevance) -> bool:
    """Whether all that follows from ``sliced`` names in a statement is the value of the names that it sets,
    which are added."""
    if relevance.touches(statement) or relevance.shapes(statement):
        return False
    parts = walk(statement)
    if any(isinstance(part, ast.NamedExpr) or _is_set_attribute(part) for part in parts):
        return False
    if isinstance(statement, ast.Expr) and not _only_tells(statement.value, relevance):
        # What it is called on may keep it, and so may what else is passed.
        sliced.update(part.id for part in parts if isinstance(part, ast.Name))
    return sets_only(statement, sliced)


def _is_set_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _only_tells(expression: ast.expr, relevance: Relevance) -> bool:
    """Whether a call prints or saves: what it is passed does not change by that."""
    function = expression.func if isinstance(expression, ast.Call) else expression
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and (function.id == "print" or function.id in relevance.modules)


def _reads(nodes: Iterable[ast.AST], names: set[str]) -> bool:
    """Whether any of ``names`` is read; what is bound within an expression counts as well."""
    return any(
        isinstance(part, ast.Name) and part.id in names and not isinstance(part.ctx, ast.Store)
        for node in nodes
        for part in walk(node)
    )
