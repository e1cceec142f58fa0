"""Excerpts: what is marked stands under what it marks, whatever characters the line is made of."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gradfix.core.codemod import Finding, Note
from gradfix.core.span import Span
from gradfix.report.excerpt import WIDTH, Row, excerpt


def at(line: str, part: str, number: int = 1) -> Span:
    start = len(line[: line.index(part)].encode())
    return Span(number, start, number, start + len(part.encode()))


def drawn(rows: list[Row]) -> list[str]:
    return [row.text for row in rows]


def one(line: str, part: str) -> list[str]:
    return drawn(excerpt([line], Finding("c", "m", at(line, part))))


def test_a_why_is_told_in_the_order_of_the_lines() -> None:
    lines = ["pred = D(fake)", "opt.step()", "", "loss.backward()"]
    finding = Finding(
        "stale-forward",
        "`pred` is stale",
        at(lines[3], "loss.backward()", 4),
        (
            Note(at(lines[3], "loss.backward()", 4), "needs the old ones"),
            Note(at(lines[1], "opt.step()", 2), "they changed here"),
            Note(at(lines[0], "D(fake)"), "used here"),
        ),
    )
    rows = excerpt(lines, finding)
    assert [row.number for row in rows] == [1, None, 2, None, 4, None]
    assert drawn(rows) == [
        "pred = D(fake)",
        "       ------- used here",
        "opt.step()",
        "---------- they changed here",
        "loss.backward()",
        "^^^^^^^^^^^^^^^ needs the old ones",
    ]


def test_the_finding_is_marked_without_a_note_of_its_own() -> None:
    line = "a.b(c)"
    rows = excerpt([line], Finding("c", "m", at(line, "a.b(c)"), (Note(at(line, "c"), "this"),)))
    assert drawn(rows) == ["a.b(c)", "^^^^^^", "    - this"]


@pytest.mark.parametrize(
    ("line", "part", "expected"),
    [
        ("x = bad", "bad", ["x = bad", "    ^^^"]),
        ("\tbad", "bad", ["    bad", "    ^^^"]),
        ("a\tbad\t", "bad", ["a   bad", "    ^^^"]),
        ("'梯度', bad", "bad", ["'梯度', bad", "        ^^^"]),
        ("梯度.backward()", "梯度", ["梯度.backward()", "^^^^"]),
        ("'e\u0301', bad", "bad", ["'e\u0301', bad", "     ^^^"]),
        ("'\x1b[31m', bad", "bad", ["'\\u{1b}[31m', bad", "              ^^^"]),
        ("bad\r", "bad", ["bad", "^^^"]),
        ("x = 1  \x0c", "1", ["x = 1", "    ^"]),
    ],
)
def test_marks_stand_under_what_they_mark(line: str, part: str, expected: list[str]) -> None:
    assert one(line, part) == expected


def test_a_long_line_is_clipped_around_the_mark() -> None:
    text, marks = one("x = [" + "1, " * 100 + "bad" + ", 2" * 100 + "]", "bad")
    assert text.startswith("...")
    assert text.endswith("...")
    assert text[marks.index("^") :].startswith("bad,")
    assert marks.strip() == "^^^"
    text, marks = one("bad" + " + bad" * 100, "bad")
    assert (text[:6], text[-3:], marks) == ("bad + ", "...", "^^^")
    text, marks = one("call(" + "x" * 300 + ")", "x" * 300)
    assert text == "call(" + "x" * (WIDTH - 5) + "..."
    assert marks == "     " + "^" * (WIDTH - 5)


def test_what_spans_lines_is_marked_to_the_end_of_its_first() -> None:
    lines = ["f(a,", "  b)"]
    assert drawn(excerpt(lines, Finding("c", "m", Span(1, 2, 2, 4)))) == ["f(a,", "  ^^"]


def test_places_that_do_not_exist_are_left_out() -> None:
    assert excerpt(["x"], Finding("c", "m", Span(7, 0, 7, 1))) == []
    assert drawn(excerpt(["x"], Finding("c", "m", Span(1, 5, 1, 9)))) == ["x", " ^"]


def columns(text: str) -> int:
    """As a terminal counts them: marks that take no room may have no combining class (U+0941)."""
    without = (c for c in text if unicodedata.category(c) not in ("Mn", "Me"))
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in without)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
)
@example("\u0941", "")
def test_any_line_is_drawn_with_its_mark_in_place(before: str, after: str) -> None:
    line = f"{before}<mark>{after}"
    text, marks = one(line, "<mark>")
    assert columns(text) <= WIDTH + 6
    assert text.isprintable()
    seen = text.index("<mark>") if "<mark>" in text else -1
    assert seen >= 0
    assert columns(text[:seen]) == marks.index("^")
    assert marks.count("^") == len("<mark>")
