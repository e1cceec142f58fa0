"""Purely syntactic queries on a node."""

from __future__ import annotations

import ast

LOOPS = (ast.For, ast.AsyncFor, ast.While)


def last_name(node: ast.AST) -> str:
    """``c`` in ``a.b.c``, in ``c`` and in ``a.b.c(...)``; empty for what ends with no name."""
    named = node.func if isinstance(node, ast.Call) else node
    if isinstance(named, ast.Attribute):
        return named.attr
    return named.id if isinstance(named, ast.Name) else ""


def undetached(expression: ast.AST) -> ast.expr | None:
    """What an expression detaches: ``x`` of ``x.detach()``."""
    match expression:
        case ast.Call(ast.Attribute(inner, "detach"), [], []):
            return inner
    return None
