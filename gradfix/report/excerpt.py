"""A finding in the source: the lines of its why, each marked and labelled, as rustc and ruff draw them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from gradfix.core.codemod import Finding
from gradfix.core.span import Span
from gradfix.project.source import character_column
from gradfix.system.printable import characters, printable

WIDTH = 110
"""Terminal columns that a line of source may take; longer ones are clipped around what is marked."""

_TAB = 4
_ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Row:
    """One row of an excerpt."""

    number: int | None
    """The line's number; ``None`` for a row of marks under the line above it."""
    text: str
    primary: bool = False
    """Whether the row marks the finding itself, rather than a step of its why."""


@dataclass(frozen=True, slots=True)
class _Mark:
    span: Span
    label: str
    primary: bool


def excerpt(lines: Sequence[str], finding: Finding) -> list[Row]:
    """The lines that ``finding`` speaks of, in order, with a row of marks for each thing it says."""
    marks = sorted(_marks(finding), key=lambda mark: mark.span)
    rows: list[Row] = []
    for number in sorted({mark.span.line for mark in marks}):
        if 0 < number <= len(lines):
            rows.extend(
                _line(number, lines[number - 1], [mark for mark in marks if mark.span.line == number])
            )
    return rows


def _marks(finding: Finding) -> list[_Mark]:
    marks = [_Mark(note.span, printable(note.message), note.span == finding.span) for note in finding.notes]
    if not any(mark.primary for mark in marks):
        marks.append(_Mark(finding.span, "", True))
    return marks


def _line(number: int, line: str, marks: Sequence[_Mark]) -> Iterable[Row]:
    line = line.rstrip()
    cells = _cells(line)
    edges = [0, *accumulate(_width(cell) for cell in cells)]
    places = [_columns(line, mark.span, edges) for mark in marks]
    start, end = _window(edges[-1], places)
    yield Row(number, _clip(cells, edges, start, end))
    shift = len(_ELLIPSIS) - start if start else 0
    for mark, (left, right) in zip(marks, places):
        right = min(right, end)
        sign = ("^" if mark.primary else "-") * max(right - left, 1)
        yield Row(None, f"{' ' * (left + shift)}{sign} {mark.label}".rstrip(), mark.primary)


def _cells(line: str) -> list[str]:
    """What each character of ``line`` looks like: tabs as spaces, what could steer a terminal written out."""
    cells: list[str] = []
    column = 0
    for character, shown in zip(line, characters(line)):
        cell = " " * (_TAB - column % _TAB) if character == "\t" else shown
        cells.append(cell)
        column += _width(cell)
    return cells


def _width(cell: str) -> int:
    """The terminal columns that ``cell`` takes: two for East Asian characters, none for accents."""
    if cell.isascii():
        return len(cell)
    if unicodedata.category(cell) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(cell) in "WF" else 1


def _columns(line: str, span: Span, edges: Sequence[int]) -> tuple[int, int]:
    """The terminal columns between which ``span`` lies on its first line."""
    last = len(edges) - 1
    left = edges[min(character_column(line, span.column) - 1, last)]
    if span.end_line > span.line:
        return left, edges[last]
    return left, edges[min(character_column(line, span.end_column) - 1, last)]


def _window(width: int, places: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The terminal columns of a line that are shown, such that the first mark is among them."""
    if width <= WIDTH:
        return 0, width
    first = min(left for left, _ in places)
    if first < WIDTH * 2 // 3:
        return 0, WIDTH
    start = min(first - WIDTH // 3, width - WIDTH)
    return start, start + WIDTH


def _clip(cells: Sequence[str], edges: Sequence[int], start: int, end: int) -> str:
    shown = "".join(
        cell for cell, left, right in zip(cells, edges, edges[1:]) if start <= left and right <= end
    )
    # A wide character that is cut in half leaves a column that its marks still count on.
    lost = next((edge - start for edge in edges if edge >= start), 0)
    before = _ELLIPSIS + " " * lost if start else ""
    return f"{before}{shown}{_ELLIPSIS if end < edges[-1] else ''}"
