"""Passes of two versions that step the same optimizers in different order."""

from __future__ import annotations

import pytest

from gradfix.verify.judging.iterations import common
from gradfix.verify.recording.records import Draws, RecordedOptimizer, RecordedStep, Recording, SourceLocation

NOWHERE = SourceLocation(None)


def run(order: str) -> Recording:
    """A run whose optimizers ``a`` and ``b`` step in this order; a capital letter is an evaluation within."""
    optimizers = tuple(
        RecordedOptimizer(index, "SGD", NOWHERE, name, ())
        for index, name in enumerate(sorted(set(order.lower())))
    )
    steps = tuple(
        RecordedStep(ord(name) - ord("a"), NOWHERE, Draws("", "", None), (), after=())
        if name.islower()
        else RecordedStep(ord(name) - ord("A"), NOWHERE, Draws("", "", None), ())
        for name in order
    )
    return Recording("", 0, "finished", "", "", "", optimizers, steps, None, {}, 0.0)


@pytest.mark.parametrize(
    ("one", "other", "ends"),
    [
        ("abab", "abab", [(1, 1), (2, 2)]),
        ("abab", "baba", [(1, 1), (2, 2)]),
        ("aaabaaab", "baaabaaa", [(3, 1), (6, 2)]),
        ("aaabaaab", "aaabaaab", [(3, 1), (6, 2)]),
        ("aaababab", "aaabbaba", [(3, 1), (4, 2), (5, 3)]),  # one that was trained before
        ("aab", "aab", [(2, 1)]),
        ("aabb", "aabb", [(2, 1), (2, 2)]),  # and then no longer steps
        ("aa", "aaa", [(1,), (2,)]),
        ("ab", "ba", [(1, 1)]),
        ("aabab", "bbaaa", [(3, 2)]),
        ("AAab", "bAa", [(1, 1)]),  # a step that evaluates several times
        ("", "", []),
    ],
)
def test_a_pass_ends_where_all_have_stepped_equally_often(
    one: str, other: str, ends: list[tuple[int, ...]]
) -> None:
    assert list(common(run(one), run(other)).ends) == ends


def test_every_other_pass_rests() -> None:
    made = run("aabaabaabaab")
    iterations = common(made, made)
    assert iterations.moving() == ((2, 6), (1, 3))
    kept = iterations.resting(made)
    assert [step.optimizer for step in kept.steps] == [0, 0, 1, 0, 0, 1]
    assert [number for number in range(1, 9) if iterations.rests(0, number)] == [3, 4, 7, 8]
