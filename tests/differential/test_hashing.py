"""Equal hashes mean equal gradients, on generated programs and mutations of them.

The default run compares a few hundred pairs of versions. The long one is

    pytest -m long -s tests/differential/test_hashing.py

with ``GRADFIX_PAIRS`` (1000000) pairs of gradients in the same place of two versions of a program, of
the seed ``GRADFIX_SEED`` (0), ``GRADFIX_SECONDS`` (7200) at most. It prints after every part how many
pairs were compared, how many of the equal ones hashes have proved, and every wrong equality.
"""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest
import torch
from agreement import program
from choices import Choices, Seeded
from hashing import Tally, TooLong, Watching, compare_many, mutated, observe

from gradfix.runtime.probe import provenance

PAIRS = int(os.environ.get("GRADFIX_PAIRS", "1000000"))
SEED = os.environ.get("GRADFIX_SEED", "0")
SECONDS = float(os.environ.get("GRADFIX_SECONDS", "7200"))
PART = 10
"""So many programs between two lines of progress."""
MUTANTS = 40
"""Mutations of each program in the long run; every two of its versions are compared."""
PROVED = 0.85
"""The share of equal gradients that hashes must prove equal."""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """More threads end all hashing."""
    torch.set_num_threads(1)


def test_equal_hashes_mean_equal_gradients() -> None:
    tally = compare_many("default", range(40))
    assert not tally.wrong, tally.wrong[0]
    assert not tally.lost
    assert tally.pairs["changed"] > 100  # the mutations do change gradients
    assert tally.pairs.total() > 1000
    assert tally.proved >= PROVED, "\n# and\n".join(tally.missed)


def test_equal_hashes_mean_equal_bits_after_every_operation() -> None:
    table: dict[str, str] = {}
    wrong: Counter[str] = Counter()
    for number in range(30):
        watching = Watching()
        watching.table = table
        try:
            _, lost = observe(program("operations", number)[0], watching)
        except TooLong:
            continue
        assert lost is None
        wrong.update(watching.wrong)
    assert not wrong
    assert len(table) > 2000


def test_a_wrong_equality_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself can fail: a mode that does not see writes is found out."""
    monkeypatch.setattr(provenance.Provenance, "written", lambda self, tensor, value: None)
    assert compare_many("default", range(10)).wrong


def test_mutations_are_reproducible_and_differ() -> None:
    source = program("mutations", 1)[0]
    versions = {mutated(source, Choices(Seeded(number))) for number in range(20)}
    assert len(versions) > 15
    assert versions == {mutated(source, Choices(Seeded(number))) for number in range(20)}


@pytest.mark.long
def test_equal_hashes_mean_equal_gradients_in_the_long_run() -> None:
    """As above, on very many pairs."""
    tally = Tally()
    started = time.monotonic()
    start = 0
    while tally.pairs.total() < PAIRS and time.monotonic() - started < SECONDS:
        tally.merge(compare_many(SEED, range(start, start + PART), mutants=MUTANTS))
        start += PART
        print(
            f"{tally.pairs.total()} pairs of gradients in {tally.programs} runs of versions of {start}"
            f" programs: {len(tally.wrong)} wrong; {tally.pairs['proved']} of"
            f" {tally.pairs['proved'] + tally.pairs['missed']} equal ones proved ({tally.proved:.2%});"
            f" parameters: {dict(tally.values)}; seen again: {tally.repeated}; no hashes: {tally.lost}",
            flush=True,
        )
    for wrong in tally.wrong:
        print(wrong)
    assert not tally.wrong
    assert tally.proved >= PROVED
    assert tally.pairs.total() >= PAIRS, "the time was spent first"
