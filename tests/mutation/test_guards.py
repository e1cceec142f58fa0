"""Each guard of a codemod has a program that needs it: a sample by default, and all if that is asked for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from guards import NAME, Switchboard

FOLDER = Path(__file__).parent
SAMPLE = {
    "dropped_detach": 5,
    "replaced_layer": 3,
    "scheduler_before_optimizer": 3,
    "stepped_twice": 5,
    "undivided_accumulation": 4,
}
"""By codemod, how many of its guards none of its own programs needs. These numbers may only fall."""


def survivors(*arguments: str) -> Counter[str]:
    """By file, how many guards are left out unnoticed. They are compiled in before gradfix is imported."""
    done = subprocess.run(
        [sys.executable, str(FOLDER), *arguments], capture_output=True, text=True, check=True
    )
    return Counter(re.findall(r"^(\w+)\.py:\d+: no program needs", done.stdout, re.MULTILINE))


def test_as_many_guards_of_a_sample_are_needed_as_is_said() -> None:
    assert survivors("--own", *SAMPLE) == SAMPLE


@pytest.mark.long
def test_no_guard_is_added_that_no_program_needs() -> None:
    table = FOLDER / "survivors.json"
    kept = table.read_text(encoding="utf-8")
    try:
        assert survivors() <= Counter(json.loads(kept))
    finally:
        table.write_text(kept, encoding="utf-8")


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
