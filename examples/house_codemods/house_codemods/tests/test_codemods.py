"""Every program of `fixtures` is found, repaired and proved as its header says."""

from pathlib import Path

import pytest

from gradfix.authoring import cases

CODEMODS = Path(__file__).parent.parent


@pytest.mark.parametrize("case", cases.of(CODEMODS), ids=str)
def test_a_program(case: cases.Case) -> None:
    assert cases.differences(case) == []
