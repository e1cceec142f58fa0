"""Rewrite in-place statements to compute a new tensor, where that is equivalent.

It is not where the tensor is read under another name, which would still have the old values.
"""

from __future__ import annotations

import ast

from gradfix.autograd import operators
from gradfix.autograd.graph import InPlaceChange
from gradfix.autograd.program import Program
from gradfix.core.codemod import Edit, ReplaceStatement
from gradfix.core.segments import enclosed
from gradfix.core.span import Span
from gradfix.core.syntax import last_name, walk


def out_of_place(method: str) -> str | None:
    """The method that does out of place what one does in place."""
    plain = method.removesuffix("_")
    return plain if plain != method and operators.method(plain) is not None else None


def renamed(program: Program, call: ast.Call, method: str) -> str:
    """The source of a call of a method, by another name of the method."""
    assert isinstance(call.func, ast.Attribute)
    text, function = program.segment(call), program.segment(call.func)
    return f"{function.removesuffix(call.func.attr)}{method}{text[len(function) :]}"


def bound_anew(program: Program, statement: ast.stmt) -> Edit | None:
    """The edit of a statement that changes a variable in place, so that it binds it to a new tensor.

    ``x += y`` becomes ``x = x + y``, and ``x.mul_(2).sub_(1)`` becomes ``x = x.mul(2).sub(1)``.
    """
    match statement:
        case ast.AugAssign(ast.Name(name), operator, value):
            sign = ast.unparse(ast.BinOp(ast.Name("a"), operator, ast.Name("b")))[2:-2]
            code = f"{name} = {name} {sign} {enclosed(program.segment(value), f'{name} {sign} ')}"
        case ast.Expr(ast.Call() as call):
            name, written = _written(program, call) or ("", "")
            code = f"{name} = {written}"
            if not name:
                return None
        case _:
            return None
    return ReplaceStatement(Span.of(statement), code) if statement.lineno == statement.end_lineno else None


def _written(program: Program, call: ast.Call) -> tuple[str, str] | None:
    """The variable that a chain of methods changes in place, and the chain that leaves it as it is."""
    if not isinstance(call.func, ast.Attribute):
        return None
    plain = out_of_place(call.func.attr)
    if plain is None:
        return None
    text = renamed(program, call, plain)
    match call.func.value:
        case ast.Name(name):
            return name, text
        case ast.Call() as before:
            inner = _written(program, before)
            return None if inner is None else (inner[0], inner[1] + text[len(program.segment(before)) :])
        case _:
            return None


def held_by(program: Program, change: InPlaceChange, target: ast.Name) -> list[ast.Name] | None:
    """The variables that hold what is changed, if nobody reads it afterwards but by the one that is changed.

    That is the variable itself, or, if it is a parameter, the one of the outermost caller that has handed it
    in; none, if that computes it for the call. None where something else may hold it, or where a variable on
    the way is read again for more than its shape or its gradient.
    """
    if change.stack is None:
        return None
    name, statement = target, program.statement(change.site)
    for_itself = not isinstance(statement, (ast.AugAssign, ast.Expr)) or read_again(
        program, statement, target.id
    )
    for call, given in reversed(change.stack):
        if not is_parameter(program, name):
            break
        handed = [expression for value, expression in given if value is change.written]
        if len(handed) == 1 and isinstance(handed[0], (ast.Call, ast.BinOp)) and handed[0].lineno > 0:
            return [] if for_itself else None  # It is computed for this call.
        if len(handed) != 1 or not isinstance(handed[0], ast.Name) or handed[0].lineno <= 0:
            return None
        if read_again(program, call, handed[0].id):
            return None
        name = handed[0]
    if is_parameter(program, name) or not (for_itself or name is target):
        return None
    return [name]


def is_parameter(program: Program, expression: ast.expr) -> bool:
    """Whether this is a parameter of the function that it stands in."""
    spec = getattr(program.function(expression), "args", None)
    if not isinstance(spec, ast.arguments) or not isinstance(expression, ast.Name):
        return False
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    return any(given is not None and given.arg == expression.id for given in every)


def bound_at(program: Program, name: ast.Name) -> list[ast.stmt]:
    """The statements that bind a variable, in the function that it is read in."""
    function = program.function(name)
    stores = (n for n in walk(function) if isinstance(n, ast.Name) and n.id == name.id)
    found = (program.statement(n) for n in stores if not isinstance(n.ctx, ast.Load))
    return [s for s in dict.fromkeys(found) if not isinstance(s, ast.AugAssign)]


def read_again(program: Program, at: ast.AST, name: str) -> bool:
    """Whether a variable may be read behind a place, for more than its shape or gradient, before it is bound.

    What stands before that place in a loop is read in the next iteration.
    """
    function = program.function(at)
    loops = [
        set(walk(outer))
        for outer in program.ancestors(at)
        if isinstance(outer, (ast.For, ast.While)) and program.function(outer) is function
    ]
    loops = [nodes for nodes in loops if not any(_reads(n, name, ast.Store) for n in nodes)]
    inside = set(walk(at))
    end = (getattr(at, "end_lineno", 0), getattr(at, "end_col_offset", 0))
    for node in walk(function):
        if node in inside or not _reads(node, name, ast.Load) or _without_its_values(program, node):
            continue
        if (node.lineno, node.col_offset) >= end or any(node in nodes for nodes in loops):  # type: ignore[attr-defined]
            return True
    return False


def _reads(node: ast.AST, name: str, how: type[ast.expr_context]) -> bool:
    """Whether a node is that variable, or attribute, read or bound."""
    return (
        isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, how)
        and ast.unparse(node) == name
    )


def _without_its_values(program: Program, node: ast.AST) -> bool:
    """Whether a tensor is asked for its shape or its gradient alone."""
    outer = program.parent(node)
    if isinstance(outer, ast.Attribute):
        return outer.attr in ASIDE
    inner = node
    if isinstance(outer, (ast.List, ast.Tuple)):
        inner, outer = outer, program.parent(outer)
    if isinstance(outer, ast.keyword):
        return outer.arg == "inputs"
    if not isinstance(outer, ast.Call):
        return False
    function = last_name(outer)
    return function == "len" or (function == "grad" and inner in outer.args[1:])


ASIDE = frozenset(
    "shape size dim ndim device dtype numel grad requires_grad requires_grad_ zero_grad".split()
)
"""What a tensor is asked for that is not what it holds."""
