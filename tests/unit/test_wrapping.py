"""Prose is wrapped at words where a terminal is narrow, and nowhere else."""

from __future__ import annotations

import re

import pytest

from gradfix.core.codemod import Finding, Note
from gradfix.core.span import Span
from gradfix.pipeline.results import FileReport, Report, Reported
from gradfix.report.text import Text

LINE = "        total = criterion(network(images), labels) + penalty"
LABEL = "what is computed here hangs on the graph of the pass before, and goes through it once more"
FOUND = Finding(
    "some-mistake",
    "`total` carries the graph of earlier passes of the loop into the backward of this one",
    Span(1, 16, 1, 60),
    (Note(Span(1, 26, 1, 42), LABEL), Note(Span(1, 16, 1, 60), "autograd raises")),
    advice="detach what is carried at the start of each pass, or add up the losses of all passes",
)


def rendered(width: int | None) -> str:
    report = Report((FileReport("train.py", f"{LINE}\n", (Reported(FOUND),)),), (), 1, ())
    return "".join(Text(False, width).report(report))


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_longer_than_the_terminal_and_no_word_is_lost(width: int) -> None:
    told = rendered(width)
    assert max(map(len, told.splitlines())) <= width
    plain = re.findall(r"\w+", rendered(None))
    assert sorted(re.findall(r"\w+", told)) == sorted(plain)


def test_what_is_no_terminal_gets_whole_lines() -> None:
    assert LABEL in rendered(None)
    assert f"some-mistake: {FOUND.message}\n" in rendered(None)
    assert f"by hand: {FOUND.advice}\n" in rendered(None)


def test_a_label_that_has_room_stays_beside_its_mark() -> None:
    assert re.search(r"\^+ autograd raises\n", rendered(80))
