"""Guards: the single conditions by which a codemod says nothing, found in its text and taken out one by one.

A guard is an operand of ``and`` or ``or``, the test of an ``if`` without ``else``, or an ``if`` of a
comprehension. To take one out is to put its neutral value in its place: what leaves the decision to the other
conditions, or has none made. All are compiled in at once, as calls of :meth:`Switchboard.value`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

NAME = "__guard__"
"""What the compiled modules call the switchboard."""


@dataclass(frozen=True)
class Guard:
    """One condition in the text of a codemod, or of what codemods are built of."""

    module: str
    function: str
    text: str
    ordinal: int
    """Which it is, of those that are written alike in one function."""
    line: int = field(compare=False)
    neutral: bool = field(compare=False)
    """The value that is as if the condition were not there."""
    narrows: bool = field(compare=False)
    """Whether it does nothing but tell a type, which a type checker may ask for."""

    @property
    def key(self) -> str:
        """What names it in the table, wherever its line moves."""
        nth = f" #{self.ordinal + 1}" if self.ordinal else ""
        return f"{self.module}.{self.function}{nth}: {self.text}"


class Switchboard:
    """All guards of the modules that were compiled with it; at most one of them is out."""

    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self.out: int | None = None
        """The guard that is taken out, by its number."""
        self.decisive: set[int] = set()
        """The guards that have had another value than their neutral one, since this was last emptied."""

    def value(self, number: int, value: object) -> object:
        """What a condition is worth: its value, or the neutral one if it is taken out."""
        neutral = self.guards[number].neutral
        if bool(value) != neutral:
            self.decisive.add(number)
            if number == self.out:
                return neutral
        return value

    def compiled(self, text: str, module: str) -> ast.Module:
        """The tree of a module in which each guard asks the switchboard."""
        tree = ast.parse(text)
        for node, neutral in list(_conditions(tree)):
            node.neutral = neutral  # type: ignore[attr-defined]
        return ast.fix_missing_locations(_Instrumented(self, module).visit(tree))


def _conditions(tree: ast.Module) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions that are guards, each with its neutral value."""
    for node in ast.walk(tree):
        match node:
            case ast.If(test, body, []):
                yield from _guards(test, not isinstance(body[-1], LEAVES))
            case ast.If(test) | ast.IfExp(test):
                yield from _operands(test)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from _guards(test, True)
            case ast.FunctionDef(returns=ast.Name("bool") | ast.Subscript(ast.Name("TypeGuard"))):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield from _operands(inner.value)
            case ast.Assign(value=ast.BoolOp(ast.And()) as value):
                yield from _operands(value)
            case ast.Call(ast.Name("any" | "all"), [ast.GeneratorExp(elt)]):
                yield from _operands(elt)


LEAVES = ast.Return | ast.Continue | ast.Break | ast.Raise
"""What an ``if`` ends with that keeps from what follows."""


def _guards(test: ast.expr, neutral: bool) -> Iterator[tuple[ast.expr, bool]]:
    """A condition, or what it consists of where to take it out is to take out these, one after the other."""
    match test:
        case ast.BoolOp(op):
            if isinstance(op, ast.And) != neutral:
                yield test, neutral
            yield from _operands(test)
        case ast.UnaryOp(ast.Not(), ast.BoolOp() as operand):
            yield from _guards(operand, not neutral)
        case _:
            yield test, neutral


def _operands(test: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    """What stands within a condition, each with the value that leaves the decision to the rest."""
    match test:
        case ast.BoolOp(op, values):
            for value in values:
                yield from _guards(value, isinstance(op, ast.And))
        case ast.UnaryOp(ast.Not(), operand):
            yield from _operands(operand)


def _narrows(test: ast.expr) -> bool:
    """Whether a condition is ``isinstance(x, T)``, or whether something is None, and no more."""
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return _narrows(operand)
        case ast.Compare(_, [ast.Is() | ast.IsNot()], [ast.Constant(None)]):
            return True
        case ast.Call(ast.Name("isinstance")):
            return True
        case ast.BoolOp(_, values):
            return all(map(_narrows, values))
    return False


class _Instrumented(ast.NodeTransformer):
    """Puts a call of the switchboard in the place of each guard."""

    def __init__(self, board: Switchboard, module: str) -> None:
        self.board = board
        self.module = module
        self.functions: list[str] = []
        self.met: Counter[Hashable] = Counter()

    def visit(self, node: ast.AST) -> ast.AST:
        neutral = getattr(node, "neutral", None)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.functions.append(node.name)
            self.generic_visit(node)
            self.functions.pop()
            return node
        if neutral is None or not isinstance(node, ast.expr):
            return self.generic_visit(node)
        function, text = ".".join(self.functions), ast.unparse(node)
        ordinal = self.met[function, text]
        self.met[function, text] += 1
        number = len(self.board.guards)
        self.board.guards.append(
            Guard(self.module, function, text, ordinal, node.lineno, neutral, _narrows(node))
        )
        inner = self.generic_visit(node)
        call = ast.Call(ast.Name(NAME, ast.Load()), [ast.Constant(number), inner], [])
        return ast.copy_location(call, node)
