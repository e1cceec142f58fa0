"""Programs in which the graph of what is carried is cut every so many passes only."""

from __future__ import annotations

from typing import Any

import pytest

from gradfix.verify.judging.cutting import cut_every

BEFORE = '''"""A program."""
from __future__ import annotations
for turn in range(7):
    if turn:
        state = fresh
    fresh = step(state)
'''


class Carried:
    """Remembers at which turns it was detached."""

    def __init__(self) -> None:
        self.turn = 0
        self.cuts: list[int] = []

    def detach(self) -> Carried:
        self.cuts.append(self.turn)
        return self


def cuts(text: str) -> list[int]:
    """Before which turns the program cuts."""
    state = Carried()

    def step(carried: Any) -> Any:
        (one,) = carried if isinstance(carried, tuple) else [carried]
        one.turn += 1
        return carried

    exec(compile(text, "program", "exec"), {"step": step, "state": state, "pair": (state,)})
    return state.cuts


@pytest.mark.parametrize(
    ("old", "new", "late", "expected"),
    [
        ("    if turn:\n", "    state = state.detach()\n    if turn:\n", False, [0, 3, 6]),
        ("step(state)\n", "step(state)\n    fresh = fresh.detach()  # cut\n", True, [3, 6]),
        ("state = fresh\n", "state = fresh.detach()\n", True, [3, 6]),
        ("step(state)\n", "step(state)\n    pair = tuple(s.detach() for s in pair)\n", True, [3, 6]),
    ],
)
def test_the_graph_is_cut_every_third_pass(old: str, new: str, late: bool, expected: list[int]) -> None:
    text = cut_every(BEFORE, BEFORE.replace(old, new), 3, late)
    assert text is not None
    assert cuts(text) == expected


@pytest.mark.parametrize(
    "after",
    [
        BEFORE,
        BEFORE.replace("step(state)", "step(state.detach())").replace("fresh = ", "fresh = (\n        "),
        BEFORE.replace("    fresh = step(state)", "    show(state.detach())\n    fresh = step(state)"),
        BEFORE.replace("    fresh = step(state)", "    fresh = step(state.detach()); show(fresh)"),
        BEFORE.replace("for", "for for"),
    ],
)
def test_what_cannot_be_cut_more_seldom(after: str) -> None:
    assert cut_every(BEFORE, after, 3, late=False) is None
