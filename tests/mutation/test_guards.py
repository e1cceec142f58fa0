"""Each guard of a codemod has a program that needs it: a sample by default, and all if that is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from guards import NAME, Switchboard

FOLDER = Path(__file__).parent
SURVIVORS = (FOLDER / "survivors.txt").read_text(encoding="utf-8").splitlines()
MOST = 0
"""As many guards have no program that needs them; this number may only fall."""
SAMPLE = ("missing_zero_grad", "scheduler_before_optimizer", "exhausted_parameters")
"""Codemods whose own fixtures are few and need every guard."""


def survey(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Guards are compiled in before gradfix is imported, so in a process of their own."""
    return subprocess.run([sys.executable, str(FOLDER), *arguments], capture_output=True, text=True)


def test_each_guard_of_a_sample_is_needed_by_a_program() -> None:
    done = survey("--check", *SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_guard_that_no_program_needs_is_not_added() -> None:
    assert len(SURVIVORS) <= MOST


@pytest.mark.long
def test_each_guard_is_needed_by_a_program() -> None:
    done = survey("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_guards_are_found_and_taken_out_one_at_a_time() -> None:
    text = """
def allowed(a, b, c) -> bool:
    if a and (b or not c):
        return False
    return sum(x for x in (a, b) if x) > 1 and c
"""
    board = Switchboard()
    namespace: dict[str, Any] = {NAME: board.value}
    exec(compile(board.compiled(text, "sample"), "sample", "exec"), namespace)
    number = {guard.text: number for number, guard in enumerate(board.guards)}
    assert {guard.text: guard.neutral for guard in board.guards} == {
        "a and (b or not c)": False,
        "a": True,
        "b or not c": True,
        "b": False,
        "not c": False,
        "sum((x for x in (a, b) if x)) > 1": True,
        "x": True,
        "c": True,
    }
    allowed = namespace["allowed"]
    assert not allowed(True, True, True)
    assert board.decisive == {number["a and (b or not c)"], number["b"]}
    board.out = number["b"]
    assert allowed(True, True, True)
    board.out = None
    assert not allowed(True, True, True)
