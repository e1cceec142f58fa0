"""The ledger of the model against that of the recorder, on generated programs.

Programs run as those of users do, and the recorder writes which call has given which parameters a gradient,
computed with which weights, and what has become of it. The default run compares those of one seed; the long
one, which prints what was compared and what was not, and each difference with its program, is

    pytest -m long -s tests/differential/test_ledgers.py

with ``GRADFIX_PROGRAMS`` (10000) programs of the seed ``GRADFIX_SEED`` (0).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agreement import program
from ledgers import Comparison, compare

from gradfix.autograd import model_ledger
from gradfix.core.ledger import Ledger
from gradfix.verify.jobs import Job, Limits

PROGRAMS = int(os.environ.get("GRADFIX_PROGRAMS", "10000"))
SEED = os.environ.get("GRADFIX_SEED", "0")
PART = 100
LIMITS = Limits(steps=100, backwards=300)


def compare_many(sharing: Any, seed: str, numbers: range) -> tuple[Comparison, list[tuple[int, Comparison]]]:
    """What comes of the programs of some numbers together, and of each on which the two differ."""
    together = Comparison()
    differing = []
    sources = {number: program(seed, number)[0] for number in numbers}
    jobs = [Job(Path("program.py"), source, updates=True, limits=LIMITS) for source in sources.values()]
    for number, recording in zip(numbers, sharing.run(jobs)):
        found = compare(Path("program.py"), recording)
        together.merge(found)
        if found.differences:
            differing.append((number, found))
    return together, differing


def test_the_ledgers_agree(sharing: Any) -> None:
    """No difference at all on the programs of one seed, and most of it is compared."""
    found, _ = compare_many(sharing, "ledger", range(60))
    assert found.differences == []
    assert found.entries > 200
    assert sum(found.abstained.values()) < found.entries


@pytest.mark.parametrize(
    "forgotten",
    [
        {"clearings": ()},
        {"steps": ()},
        {"calls": lambda calls: tuple(replace(one, gives={}) for one in calls)},
    ],
    ids=lambda one: next(iter(one)),
)
def test_a_difference_is_noticed(
    forgotten: dict[str, Any], sharing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison itself can fail: a ledger without clearings, or steps, or entries, is found out."""
    real = model_ledger.ledger_of

    def forgetful(*args: Any) -> Ledger:
        ledger = real(*args)
        changed = {key: how(getattr(ledger, key)) if callable(how) else how for key, how in forgotten.items()}
        order = ledger.order
        if changed.get("steps") == ():
            changed["steps"] = tuple(replace(step, consumed={}) for step in ledger.steps)
        return replace(ledger, order=order, **changed)

    monkeypatch.setattr("ledgers.ledger_of", forgetful)
    found, _ = compare_many(sharing, "ledger", range(10))
    assert found.differences


@pytest.mark.long
def test_the_ledgers_agree_in_the_long_run(sharing: Any) -> None:
    """As above, on very many programs."""
    together = Comparison()
    for start in range(0, PROGRAMS, PART):
        part, differing = compare_many(sharing, SEED, range(start, min(start + PART, PROGRAMS)))
        together.merge(part)
        for number, found in differing:
            print(f"{SEED}.{number}:", *found.differences, sep="\n    ")
            print(program(SEED, number)[0])
        print(
            f"{start + PART} programs: {together.entries} entries compared, "
            f"{len(together.differences)} differences",
            flush=True,
        )
    for why, count in together.abstained.most_common():
        print(f"{count:6} {why}")
    assert together.differences == []
