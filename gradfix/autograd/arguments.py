"""The arguments of a call, by position and by keyword, each with its expression."""

from __future__ import annotations

import ast

from gradfix.autograd.graph import Tri
from gradfix.autograd.values import Const, Value

Argument = tuple[Value, ast.expr]


Keywords = dict[str, Argument]


class Call:
    """A call: its arguments, its node, and the name of what is called.

    Args:
        name: That of a method, or the dotted one of a function from outside.
        discarded: It stands as a statement of its own: nobody takes what it gives.
    """

    __slots__ = ("args", "discarded", "keywords", "name", "site")

    def __init__(
        self, args: list[Argument], keywords: Keywords, site: ast.AST, discarded: bool = False, name: str = ""
    ) -> None:
        self.args = args
        self.keywords = keywords
        self.site = site
        self.discarded = discarded
        self.name = name

    def argument(self, name: str, position: int) -> Value | None:
        """What is given by keyword or by position; None where it is not given."""
        if name in self.keywords:
            return self.keywords[name][0]
        return self.args[position][0] if len(self.args) > position else None

    @property
    def given(self) -> list[Argument]:
        """All arguments, each with the expression that gives it."""
        return [*self.args, *self.keywords.values()]

    @property
    def values(self) -> list[Value]:
        """The values of all arguments."""
        return [value for value, _ in self.given]

    @property
    def receiver(self) -> ast.expr:
        """The expression of what a method is called on."""
        if isinstance(self.site, ast.Call) and isinstance(self.site.func, ast.Attribute):
            return self.site.func.value
        return unwritten(self.site)


def unwritten(node: ast.AST) -> ast.expr:
    """An expression for an argument that is written nowhere: the call itself."""
    return node if isinstance(node, ast.expr) else ast.Constant(None)


def to_none(call: Call) -> bool:
    """Whether ``zero_grad(set_to_none)`` leaves no gradient (the default) or one that is zero."""
    given = call.argument("set_to_none", 0)
    return given is None or not (isinstance(given, Const) and given.value is False)


def flag(value: Value | None, default: Tri) -> Tri:
    """A boolean option: its constant value, the default where it is not given, None if unknown."""
    if value is None:
        return default
    if isinstance(value, Const):
        return default if value.value is None else bool(value.value)
    return None
