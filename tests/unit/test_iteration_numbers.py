"""Which passes of a loop a pass that is run may stand for."""

from __future__ import annotations

import ast

from gradfix.autograd.iteration_numbers import EVERY, HORIZON, NUMBER, LoopIteration, NumberExpression, where
from gradfix.autograd.semantics.arithmetic import counted
from gradfix.autograd.values import Const, IterationNumber, Unknown


def remainder(by: int, left: int, shift: int = 0) -> NumberExpression:
    """``(number + shift) % by == left``."""
    shifted: NumberExpression = (ast.Add, NUMBER, ("const", shift))
    return (ast.Eq, (ast.Mod, shifted, ("const", by)), ("const", left))


def test_answers_in_one_pass_fit_one_number() -> None:
    first = LoopIteration()
    assert first.holds(remainder(2, 1)) is None
    first.learn(remainder(2, 1), True)
    assert first.holds(remainder(2, 0)) is False
    assert first.holds(remainder(2, 0, shift=1)) is True
    assert first.holds(remainder(3, 0)) is None
    first.learn(remainder(3, 0), True)
    assert first.holds(remainder(6, 3)) is True


def test_a_later_pass_is_not_the_first() -> None:
    start = (ast.Eq, NUMBER, ("const", 0))
    first = LoopIteration()
    first.learn(start, True)
    second = LoopIteration(first)
    assert second.holds(start) is False
    assert second.holds(remainder(2, 0)) is None
    assert first.flips(start, True)
    assert not second.flips(start, False)


def test_what_is_beyond_the_horizon_stays_open() -> None:
    far = (ast.Gt, NUMBER, ("const", 10 * HORIZON))
    assert where(far) == 0
    assert LoopIteration().holds(far) is None
    last = LoopIteration()
    last.may_be = 1 << (HORIZON - 1)
    assert LoopIteration(last).may_be == EVERY


def test_what_cannot_be_computed_says_nothing() -> None:
    broken = (ast.Mod, NUMBER, ("const", 0))
    assert where(broken) is None
    one = LoopIteration()
    one.learn(broken, True)
    assert one.may_be == EVERY
    assert one.holds((ast.Add, NUMBER, ("const", "a"))) is None


def test_only_whole_numbers_count() -> None:
    add = ast.Add()
    assert isinstance(counted(add, Const(0), Const(1)), IterationNumber)
    for value, step in (("a", "b"), (0.5, 1), (None, 1), (0, "b")):
        assert counted(add, Const(value), Const(step)).__class__ is Unknown
    assert counted(ast.Mult(), Const(1), Const(2)).__class__ is Unknown


def test_a_counter_goes_on() -> None:
    first = counted(ast.Sub(), Const(9), Const(2))
    assert isinstance(first, IterationNumber) and first.iteration is not None
    second = counted(ast.Sub(), first, Const(2))
    assert isinstance(second, IterationNumber) and second.iteration is not None
    assert (first.number, second.number, second.term) == (7, 5, first.term)
    first.iteration.learn((ast.Eq, first.term, ("const", 7)), True)
    assert LoopIteration(first.iteration).holds((ast.Eq, first.term, ("const", 7))) is False


def test_impossible_answers_leave_what_was_known() -> None:
    one = LoopIteration()
    one.learn(remainder(2, 1), True)
    one.learn(remainder(2, 1), False)
    assert one.holds(remainder(2, 1)) is True
