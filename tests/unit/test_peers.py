"""The rule by which benchmarks/peers.py counts: which reports tell a fault, and how other tools' are read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cases import Case
from fakes import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import peers

PROGRAM = """\
import torch


def validate(loader):
    for x in loader:
        print(net(x))


def fit(loader):
    for _ in range(3):
        for x in loader:
            loss = net(x)
            loss.backward()
    print("done")


fit([])
"""


def case(folder: Path, corrected: str | None, raises: tuple[str, int] | None = None) -> Case:
    path = folder / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    fixed = None
    if corrected is not None:
        fixed = folder / "program.fixed.py"
        fixed.write_text(corrected, encoding="utf-8")
    return Case(path, fixed, "stale-forward", "changes", raises)


@pytest.mark.parametrize(
    ("line", "told"),
    [(10, True), (11, True), (13, True), (9, False), (14, False), (5, False), (None, True)],
)
def test_a_report_in_the_loop_around_a_statement_at_fault_counts(
    tmp_path: Path, line: int | None, told: bool
) -> None:
    wrong = case(tmp_path, PROGRAM.replace("loss.backward()", "loss.sum().backward()"))
    assert peers.found(wrong, {line}) is told
    assert not peers.found(wrong, set())


def test_what_a_correction_adds_stands_beside_what_is_at_fault(tmp_path: Path) -> None:
    cleared = PROGRAM.replace(
        "            loss.backward()\n", "            zero()\n            loss.backward()\n"
    )
    assert peers.at_fault(case(tmp_path, cleared)) == [range(10, 14), range(10, 14)]


def test_where_no_loop_is_the_function_counts_and_where_neither_is_known_everything(tmp_path: Path) -> None:
    assert peers.at_fault(case(tmp_path, None, ("E1", 14))) == [range(9, 15)]
    assert peers.at_fault(case(tmp_path, None, ("E1", 17))) == [range(1, 18)]
    assert peers.at_fault(case(tmp_path, None)) is None
    assert peers.found(case(tmp_path, None), {1})


def test_reports_of_tools_that_print_lines_are_read(tmp_path: Path) -> None:
    printed = "a/b.py:12: [W5517(gradient-clear-pytorch), fit] The optimizer\nYour code\n"
    assert list(peers._lines(printed, r"^(?P<path>[^:\n]+\.py):(?P<line>\d+): \[")) == [
        peers.Report(Path("a/b.py"), 12)
    ]


def test_what_does_not_run_is_no_clean_report(tmp_path: Path) -> None:
    with pytest.raises(peers.UnavailableError, match="ZeroDivisionError"):
        peers._output([sys.executable, "-c", "1 / 0"], tmp_path)
