"""Which draws of one program stand for which of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from gradfix.verify.pairing import paired
from gradfix.verify.recording.records import Draws, RecordedOptimizer, RecordedStep, Recording, SourceLocation

NOWHERE = SourceLocation(None)
Taken = tuple[str, str]
"""An optimizer, and the draws that its step depends on, in words: a letter for the kind, and a number."""


def run(*steps: Taken, drawn: str = "") -> Recording:
    """A run with these steps, in which besides what they depend on was ``drawn``, too."""
    events = []
    most: Counter[str] = Counter()
    for optimizer, words in steps:
        draws = frozenset((word[0], int(word[1:])) for word in words.split())
        for kind, number in draws:
            most[kind] = max(most[kind], number + 1)
        index = "ab".index(optimizer)
        events.append(RecordedStep(index, NOWHERE, Draws("", "", None), (), draws=draws, drawn=dict(most)))
    for word in drawn.split():
        most[word[0]] = max(most[word[0]], int(word[1:]) + 1)
    events[-1] = RecordedStep(
        events[-1].optimizer, NOWHERE, Draws("", "", None), (), draws=events[-1].draws, drawn=dict(most)
    )
    optimizers = tuple(RecordedOptimizer(index, "SGD", NOWHERE, name, ()) for index, name in enumerate("ab"))
    return Recording("", 0, "finished", "", "", "", optimizers, tuple(events), None, {}, 0.0)


# Data of kind d, noise of kind z: one noise for both optimizers.
SHARED: Sequence[Taken] = [("a", "d0 z0"), ("b", "z0"), ("a", "d1 z1"), ("b", "z1")]


@pytest.mark.parametrize(
    ("one", "other", "numbers"),
    [
        pytest.param(SHARED, SHARED, {"d": (0, 1), "z": (0, 1)}, id="the same"),
        pytest.param(
            SHARED,
            [("a", "d0 z0"), ("b", "z1"), ("a", "d1 z2"), ("b", "z3")],
            {"d": (0, 1), "z": (0, 0, 1, 1)},
            id="noise of its own",
        ),
        pytest.param(
            SHARED,
            [("b", "z0"), ("a", "d0 z1"), ("b", "z2"), ("a", "d1 z3")],
            {"d": (0, 1), "z": (0, 0, 1, 1)},
            id="noise of its own, in another order",
        ),
        pytest.param(
            SHARED,
            [("a", "d0 z0"), ("b", "z0"), ("a", "d1 z2"), ("b", "z2")],
            {"d": (0, 1), "z": (0, -1, 1)},
            id="a draw for nothing",
        ),
        pytest.param(
            SHARED,
            [("a", "d0 z0"), ("b", "z1"), ("a", "d1 z2"), ("b", "z1")],
            None,
            id="noise that is drawn once",
        ),
        pytest.param(SHARED, [("a", "d0 z0"), ("b", "z1 z2")], None, id="two draws for one"),
        pytest.param([("a", "z0 z1")], [("a", "z0")], None, id="one draw for two"),
        pytest.param(SHARED, [("a", "d0 z0"), ("b", "y0")], None, id="a draw of another kind"),
        pytest.param(SHARED, [("a", "d0 z0"), ("b", "")], None, id="no draw"),
        pytest.param(
            [("a", "z0"), ("b", "z1")], [("a", "z0"), ("b", "z0")], None, id="one draw for both optimizers"
        ),
        pytest.param(
            [("a", "d0"), ("a", "d0 d1")],
            [("a", "d1"), ("a", "d1 d0")],
            {"d": (1, 0)},
            id="a draw that lasts",
        ),
        pytest.param(
            [("a", "d0"), ("a", "d0 d1")], [("a", "d0"), ("a", "d1 d2")], None, id="one that does not"
        ),
    ],
)
def test_what_stands_for_what(
    one: Sequence[Taken], other: Sequence[Taken], numbers: dict[str, tuple[int, ...]] | None
) -> None:
    found = paired(run(*one), run(*other))
    assert (None if found is None else dict(found)) == numbers


def test_what_no_gradient_depends_on_is_paired_in_order() -> None:
    one = run(("a", "z1"), ("a", "z3"), drawn="z5")  # z0, z2, z4 and z5 decide something, maybe
    assert paired(one, one) == (("z", (0, 1, 2, 3, 4, 5)),)
    other = run(("a", "z0"), ("a", "z3"), drawn="z7")
    assert paired(one, other) == (("z", (1, 0, 2, 3, 4, 5, -1, -1)),)
    assert paired(one, run(("a", "z0"), ("a", "z1"))) == (("z", (1, 3)),)


def test_what_is_not_compared_stands_for_nothing() -> None:
    assert paired(run(("a", "z0")), run(("a", "z0"), ("a", "z1"))) == (("z", (0, -1)),)
