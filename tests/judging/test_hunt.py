"""The hunt for wrong proofs: repairs of the fixtures that were made to fail are never proved.

By default a sample is hunted; all of them take hours, and may be shared between processes::

    pytest -m long -n 2 tests/judging/test_hunt.py
"""

from __future__ import annotations

import pytest
from cases import CASES, Case

from gradfix.autograd.prediction import feeds
from gradfix.pipeline import driver
from gradfix.pipeline.analysis import Analysis, analyse
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.pipeline.proving import faults_of
from gradfix.pipeline.results import Attempt
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.verify.trial import Rewrite
from gradfix.verify.verification import verify_rewrites
from judging import oracle
from judging.mutants import Mutant, mutants

FAULTY = [case for case in CASES if case.fixed is not None]
SAMPLE = {
    "leaking_loss/accumulated": ("cleared", "dropped", "comment"),
    "misplaced_zero_grad/every_micro_batch_and_behind": ("dropped", "doubled", "no effect"),
    "missing_zero_grad/ends_when_it_gets_worse": ("weights", "never"),
    "evaluation_with_grad/static_method_beneath_its_decorator": ("raise", "no effect"),
    "undetached_advantage/two_outputs_of_one_network": ("doubled", "other"),
    "graph_used_twice/two_vectors": ("cleared",),
    "graph_used_twice/in_method": ("scaled",),
    "graph_used_twice/before_the_closure": ("never",),
    "view_written_in_place/loop_over_stages": ("path_cut",),
    "stale_forward/detached_input_beside_another_term": ("path_cut",),
}
"""By fixture: the kinds of mutants that were proved once, or might be."""


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def parsed(case: Case, text: str) -> Source:
    read = source.parse(str(case.path), text.encode(), 1 << 24)
    assert isinstance(read, Source)
    return read


def rewrite(case: Case, attempt: Attempt, before: Analysis, mutant: Mutant, options: Options) -> Rewrite:
    """The mutant in the place of the repair, with what the model says that it feeds."""
    after = analyse(parsed(case, mutant.text), options)
    claim = attempt.fix.claim
    if before.program is not None and after.program is not None:
        claim = claim._replace(feeds=feeds(after.program, before.program) or claim.feeds)
    faults = faults_of(before), faults_of(after)
    return Rewrite(case.path, attempt.before, mutant.text, claim, attempt.fix.effect, faults=faults)


def proved_wrongly(case: Case, options: Options, kinds: tuple[str, ...] = ("",)) -> tuple[int, list[str]]:
    """How many mutants of a fixture's repairs there are of some kinds, and those that are proved."""
    count, found = 0, []
    for attempt in driver.repair(parsed(case, case.path.read_bytes().decode()), options).applied:
        before = analyse(parsed(case, attempt.before), options)
        chosen = [one for one in mutants(attempt.before, attempt.after) if one.kind.startswith(kinds)]
        rewrites = [rewrite(case, attempt, before, one, options) for one in chosen]
        for mutant, evidence in zip(chosen, verify_rewrites(rewrites, seeds=(0,))):
            count += 1
            if evidence.outcome == "proved":
                # What trains as the repair does is no mutant of it.
                if mutant.always or not oracle.trains_alike(mutant.text, attempt.after, case.path):
                    found.append(f"{case.name}: {attempt.finding.code}: {mutant.kind}: {evidence.reason}")
    return count, found


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", SAMPLE)
def test_mutants_of_some_repairs_are_not_proved(name: str, options: Options) -> None:
    (case,) = [case for case in FAULTY if case.name == name]
    count, found = proved_wrongly(case, options, SAMPLE[name])
    assert count >= len(SAMPLE[name])
    assert found == []


@pytest.mark.long
@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.name)
def test_no_mutant_of_a_repair_is_proved(case: Case, options: Options) -> None:
    count, found = proved_wrongly(case, options)
    assert count > 0
    assert found == []
