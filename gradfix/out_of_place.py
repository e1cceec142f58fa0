"""Statements that change a tensor in place, written so that they compute a new one."""

from __future__ import annotations

import ast

from gradfix.autograd import operators
from gradfix.autograd.training_step import Program
from gradfix.codemod import Edit, ReplaceStatement, Span
from gradfix.segments import enclosed


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
