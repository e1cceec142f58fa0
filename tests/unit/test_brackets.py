"""A patch has the brackets that it needs, and no others."""

from __future__ import annotations

import pytest

from gradfix.core.segments import enclosed, meaning


@pytest.mark.parametrize(
    ("text", "before", "after", "told"),
    [
        ("a * b", "x + ", "", "a * b"),
        ("a + b", "x + ", "", "(a + b)"),
        ("a + b", "", " + x", "a + b"),
        ("(a) + (b)", "x * ", "", "((a) + (b))"),
        ("(a + b)", "x * ", "", "(a + b)"),
        ("a ** 2", "x / ", "", "a ** 2"),
        ("a if b else c", "x - ", "", "(a if b else c)"),
        ("f(a)[0].b", "x @ ", "", "f(a)[0].b"),
        ("-a", "x ** ", "", "-a"),
        ("lambda: a", "x + ", "", "(lambda: a)"),
    ],
)
def test_brackets(text: str, before: str, after: str, told: str) -> None:
    assert enclosed(text, before, after) == told
    assert meaning(f"{before}{told}{after}") == meaning(f"{before}({text}){after}")
