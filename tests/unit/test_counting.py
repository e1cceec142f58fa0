"""Which passes of a loop a pass that is run may stand for."""

from __future__ import annotations

import ast

from gradfix.autograd.counting import EVERY, HORIZON, NUMBER, Pass, Term, where


def remainder(by: int, left: int, shift: int = 0) -> Term:
    """``(number + shift) % by == left``."""
    shifted: Term = (ast.Add, NUMBER, ("const", shift))
    return (ast.Eq, (ast.Mod, shifted, ("const", by)), ("const", left))


def test_answers_in_one_pass_fit_one_number() -> None:
    first = Pass()
    assert first.holds(remainder(2, 1)) is None
    first.learn(remainder(2, 1), True)
    assert first.holds(remainder(2, 0)) is False
    assert first.holds(remainder(2, 0, shift=1)) is True
    assert first.holds(remainder(3, 0)) is None
    first.learn(remainder(3, 0), True)
    assert first.holds(remainder(6, 3)) is True


def test_a_later_pass_is_not_the_first() -> None:
    start = (ast.Eq, NUMBER, ("const", 0))
    first = Pass()
    first.learn(start, True)
    second = Pass(first)
    assert second.holds(start) is False
    assert second.holds(remainder(2, 0)) is None
    assert first.turns(start, True)
    assert not second.turns(start, False)


def test_what_is_beyond_the_horizon_stays_open() -> None:
    far = (ast.Gt, NUMBER, ("const", 10 * HORIZON))
    assert where(far) == 0
    assert Pass().holds(far) is None
    last = Pass()
    last.may_be = 1 << (HORIZON - 1)
    assert Pass(last).may_be == EVERY


def test_what_cannot_be_computed_says_nothing() -> None:
    broken = (ast.Mod, NUMBER, ("const", 0))
    assert where(broken) is None
    one = Pass()
    one.learn(broken, True)
    assert one.may_be == EVERY
    assert one.holds((ast.Add, NUMBER, ("const", "a"))) is None


def test_impossible_answers_leave_what_was_known() -> None:
    one = Pass()
    one.learn(remainder(2, 1), True)
    one.learn(remainder(2, 1), False)
    assert one.holds(remainder(2, 1)) is True
