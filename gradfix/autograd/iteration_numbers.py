"""The numbers of the iterations of a loop whose length is unknown.

A few iterations are run, and each of them stands for any later one. What a script computes from the number of
an iteration (``(i + 1) % 5 == 0``) may therefore come out either way. But two answers in one iteration have
to fit the same number: ``i % 2 == 0`` and ``i % 2 == 1`` hold in different iterations, and an iteration after
the first is not the first. So an iteration knows the numbers that it may still have, and loses some with
every answer.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

HORIZON = 1 << 10
"""Numbers are told apart as far as this."""
EVERY = (1 << HORIZON) - 1

NumberExpression = tuple[Any, ...]
"""What is computed from the number of an iteration: :data:`NUMBER`, ``("const", value)``, or the class of an
operator with its operands."""
NUMBER: NumberExpression = ("number",)


class LoopIteration:
    """An iteration that is run."""

    __slots__ = ("may_be",)

    def __init__(self, after: LoopIteration | None = None) -> None:
        self.may_be = EVERY if after is None else after.later()
        """A bit for each number that it may have."""

    def later(self) -> int:
        """The numbers that an iteration after this one may have."""
        lowest = self.may_be & -self.may_be
        # Beyond the horizon nothing is known any more.
        return EVERY & ~(2 * lowest - 1) or EVERY

    def holds(self, term: NumberExpression) -> bool | None:
        """Whether a condition holds in this iteration, if its number leaves no choice.

        None also where the numbers that are told apart say nothing: its answer may change at a larger one.
        """
        numbers = where(term)
        if numbers is None or numbers in (0, EVERY):
            return None
        if not numbers & self.may_be:
            return False
        return None if self.may_be & ~numbers else True

    def flips(self, term: NumberExpression, answer: bool) -> bool:
        """Whether a condition that has this answer has the other one in some later iteration."""
        numbers = where(term)
        return numbers is not None and bool(self.later() & (~numbers if answer else numbers))

    def learn(self, term: NumberExpression, answer: bool) -> None:
        """Keep the numbers for which a condition has this answer."""
        numbers = where(term)
        if numbers is not None:
            self.may_be = self.may_be & (numbers if answer else ~numbers) or self.may_be


@lru_cache(maxsize=1024)
def where(term: NumberExpression) -> int | None:
    """The numbers of iterations, as bits, for which a term is true; None if it cannot be computed for all."""
    try:
        values = _values(term)
        return int("".join("1" if value else "0" for value in reversed(values)), 2)
    except (ArithmeticError, TypeError, ValueError):
        return None


def _values(term: NumberExpression) -> list[Any]:
    if term is NUMBER or term == NUMBER:
        return list(range(HORIZON))
    if term[0] == "const":
        return [term[1]] * HORIZON
    return list(map(OPERATORS[term[0]], _values(term[1]), _values(term[2])))


ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {**ARITHMETIC, **ORDER}
