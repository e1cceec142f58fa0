"""What a call hands over: arguments by position and by keyword, each with the expression that gives it."""

from __future__ import annotations

import ast

from gradfix.autograd.graph import Tri
from gradfix.autograd.values import Const, Value

Argument = tuple[Value, ast.expr]


Keywords = dict[str, Argument]


def nowhere(node: ast.AST) -> ast.expr:
    return node if isinstance(node, ast.expr) else ast.Constant(None)


def receiver_of(node: ast.AST) -> ast.expr:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value
    return nowhere(node)


def to_none(args: list[Argument], keywords: Keywords) -> bool:
    """Whether ``zero_grad(set_to_none)`` leaves no gradient (the default) or one that is zero."""
    given = args[0] if args else keywords.get("set_to_none")
    return given is None or not (isinstance(given[0], Const) and given[0].value is False)


def flag(value: Value | None, default: Tri) -> Tri:
    """A boolean option: its constant value, the default where it is not given, None if unknown."""
    if value is None:
        return default
    if isinstance(value, Const):
        return default if value.value is None else bool(value.value)
    return None


def option(args: list[Argument], keywords: Keywords, name: str, position: int) -> Value | None:
    """An argument given by keyword or by position."""
    if name in keywords:
        return keywords[name][0]
    return args[position][0] if len(args) > position else None
