"""Every fixture of every codemod: what the model says, what is rewritten, and what running both shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from cases import CASES, FIXTURES, Case
from ledgers import compare

from gradfix.autograd.graph import Backward, InPlaceChange
from gradfix.autograd.program import analyze
from gradfix.pipeline import analysis, driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.pipeline.results import Attempt, FilePlan
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.rewriting.rewrite import apply_fixes
from gradfix.rewriting.splice import spliced

FAULTY = [case for case in CASES if case.fixed is not None]
CLEAN = [case for case in CASES if case.fixed is None and case.fault == "none"]
REPORTED = [case for case in CASES if case.fixed is None and case.fault != "none"]
"""Where only its author can decide what is right: the mistake is told, and nothing is rewritten."""


def by_name(case: Case) -> str:
    return case.name


@pytest.fixture(autouse=True)
def no_codemod_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a codemod raises is a problem of the file, and the others go on: here it is a failure."""

    def fail(path: str, what: str, error: Exception) -> None:
        raise error

    monkeypatch.setattr(analysis, "problem_of", fail)


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def parsed(path: Path, data: bytes | None = None) -> Source:
    read = source.parse(str(path), path.read_bytes() if data is None else data, 1 << 24)
    assert isinstance(read, Source)
    return read


def repaired(case: Case, options: Options) -> FilePlan:
    result = driver.repair(parsed(case.path), options)
    assert not result.problems
    assert not result.messages
    return result


def first_error(path: Path) -> tuple[str, int] | None:
    """The error that the model predicts for a run from the top."""
    text = path.read_bytes().decode()
    program = analyze(ast.parse(text), text, path)
    assert program.messages == ()
    for event in program.entry_points[0].run_without_options.events if program.entry_points else ():
        site = event.site
        assert isinstance(site, (ast.expr, ast.stmt))
        if isinstance(event, Backward) and event.failure is not None and event.certain:
            return event.failure.kind, site.lineno
        if isinstance(event, InPlaceChange) and event.failure is not None:
            return event.failure.kind, site.lineno
    return None


def test_there_are_fixtures() -> None:
    assert len(FAULTY) > 100
    assert len(CLEAN) > 100


def test_every_trap_stands_in_two_writings() -> None:
    table = (FIXTURES / "README.md").read_text(encoding="utf-8").split("| trap | cases |\n|---|---|\n")[1]
    rows = {row.split("|")[1].strip(): re.findall(r"`(\w+/\w+)`", row) for row in table.splitlines()}
    assert [trap for trap, cases in rows.items() if len(set(cases)) < 2] == []
    named = {case for cases in rows.values() for case in cases}
    assert named - {case.name for case in CLEAN} == set()
    # What the articles alone show is no trap of its own.
    traps = {c.name for c in CLEAN if c.path.parent.name == "traps" and "article" not in c.path.stem}
    assert traps - named == set()


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_the_model_predicts_the_error_and_its_line(case: Case) -> None:
    assert first_error(case.path) == case.raises


@pytest.mark.parametrize("case", FAULTY, ids=by_name)
def test_the_model_predicts_no_error_for_the_fixed_program(case: Case) -> None:
    assert case.fixed is not None
    assert first_error(case.fixed) is None


@pytest.mark.parametrize("case", FAULTY, ids=by_name)
def test_a_faulty_program_is_repaired(case: Case, options: Options) -> None:
    assert case.fixed is not None
    result = repaired(case, options)
    assert result.after.decode() == case.fixed.read_bytes().decode()
    assert not result.remaining
    assert case.fault in {attempt.finding.code for attempt in result.applied}
    assert case.effect in {attempt.fix.effect.value for attempt in result.applied}


@pytest.mark.parametrize("case", FAULTY, ids=by_name)
def test_a_second_run_changes_nothing(case: Case, options: Options) -> None:
    assert case.fixed is not None
    result = driver.repair(parsed(case.fixed), options)
    assert result.after == result.before
    assert not result.remaining


@pytest.mark.parametrize("case", CLEAN, ids=by_name)
def test_right_code_stays_as_it_is(case: Case, options: Options) -> None:
    result = repaired(case, options)
    assert [reported.finding.message for reported in result.remaining] == []
    assert result.after == result.before


@pytest.mark.parametrize("case", REPORTED, ids=by_name)
def test_what_is_not_for_a_tool_to_repair_is_told(case: Case, options: Options) -> None:
    result = repaired(case, options)
    assert [reported.finding.code for reported in result.remaining] == [case.fault]
    assert result.after == result.before


@pytest.mark.parametrize("case", FAULTY, ids=by_name)
def test_a_mistake_is_said_once(case: Case, options: Options) -> None:
    read = parsed(case.path)
    program = analyze(read.tree, read.text, case.path)
    for codemod in options.catalog.codemods:
        if codemod.name == "graph-used-twice":
            continue  # Every backward that raises is named, though one edit may mend several.
        first = [finding.fixes[0].edits for finding in codemod.find(program) if finding.fixes]
        assert [edits for index, edits in enumerate(first) if edits in first[:index]] == []


@pytest.mark.parametrize("case", FAULTY, ids=by_name)
def test_cutting_bytes_and_rewriting_the_tree_give_the_same_text(case: Case, options: Options) -> None:
    read = parsed(case.path)
    program = analyze(read.tree, read.text, case.path)
    for codemod in options.catalog.codemods:
        for finding in codemod.find(program):
            for fix in finding.fixes:
                quick = spliced(read.text, read.tree, fix.edits)
                written = apply_fixes(read.text, [fix.edits])
                if quick is not None and written.applied:
                    assert quick == written.text


@pytest.fixture(scope="module")
def attempts(options: Options) -> list[tuple[Case, Attempt]]:
    return [(case, attempt) for case in FAULTY for attempt in repaired(case, options).applied]


PARTS = 12
"""What one verification has to do may not take longer than it may take in all, on a slow machine too."""
DEFAULT = 1
"""So many of them, which is each twelfth repair, by default; the others are long."""


UNTOLD = {
    # Whose backward gave a gradient that another network lent cannot be told from the outside.
    "missing_zero_grad/gradients_lent": "assigned by hand",
    "missing_zero_grad/gradients_lent_more_often": "assigned by hand",
    "missing_zero_grad/gradients_copied": "assigned by hand",
    # No step of the original finds the network in training mode.
    "left_in_eval_mode/evaluated_before_training": "in the same mode",
    # Without an accelerator it does not run at all.
    "undetached_fake/data_parallel_function": "device type could not be determined",
    # It raises before any backward, and nothing steps.
    "leaf_written_in_place/article_000": "nothing could be compared",
    # It raises before anything is trained.
    "exhausted_parameters/counted_before": "optimizer got an empty parameter list",
    # Without an optimizer the leaf is another tensor in each version; with one, the original is refused.
    "gradient_of_non_leaf/bound_anew": "nothing could be compared",
    "gradient_of_non_leaf/centred_weight": "nothing could be compared",
    "gradient_of_non_leaf/centred_weight_of_an_optimizer": "can't optimize a non-leaf Tensor",
    # There is no optimizer whose gradients could be compared.
    "stale_forward/weights_written_to_data": "no optimizer step ran",
    # Other random numbers are drawn, and no gradient of the original tells which stand for which.
    "stale_forward/chunks_before_the_loop": "that of no loss of the original",
    # Autograd refuses the original, and without gradients its loss, which is made of one, has no value.
    "leaf_written_in_place/rescaled_input": "that of no loss of the original",
    # To a device on which the tensor is already: both versions do the same.
    "gradient_of_non_leaf/moved_to_a_device": "no effect in this run",
}
"""Repairs that running cannot prove, with what is said of them."""


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    "part", [part if part < DEFAULT else pytest.param(part, marks=pytest.mark.long) for part in range(PARTS)]
)
def test_every_repair_is_proved_by_running_it(part: int, attempts: list[tuple[Case, Attempt]]) -> None:
    """Both versions run under torch; gradients, errors and what each step consumes are as claimed."""
    from gradfix.verify.trial import Rewrite
    from gradfix.verify.verification import verify_rewrites

    some = attempts[part::PARTS]
    rewrites = [
        Rewrite(case.path, attempt.before, attempt.after, attempt.fix.claim, attempt.fix.effect)
        for case, attempt in some
    ]
    evidence = verify_rewrites(rewrites, seeds=(0,))
    unproved = {case.name: one.lines() for (case, _), one in zip(some, evidence) if one.outcome != "proved"}
    assert list(unproved) == [case.name for case, _ in some if case.name in UNTOLD]
    assert all(any(UNTOLD[name] in line for line in lines) for name, lines in unproved.items())


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 6))])
def test_what_stays_as_it_is_runs_as_its_header_says(part: int, sharing: Any) -> None:
    """What torch says of the programs that must not change; each sixth by default."""
    from gradfix.verify.jobs import Job

    some = [*CLEAN, *REPORTED][part::6]
    recordings = sharing.run([Job(case.path, case.path.read_bytes().decode()) for case in some])
    found: list[tuple[Case, tuple[str, int | None] | None]] = []
    for case, recording in zip(some, recordings):
        error = recording.uncaught
        found.append((case, (error.kind, error.place.line) if error is not None else None))
    assert [(case.name, error) for case, error in found if error != case.raises] == []


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 10))])
def test_the_model_writes_the_ledger_of_the_run(part: int, sharing: Any) -> None:
    """Entry by entry, of right programs and wrong ones, as far as the model is certain."""
    from gradfix.verify.jobs import Job

    some = CASES[part::10]
    jobs = [Job(case.path, case.path.read_bytes().decode(), updates=True) for case in some]
    told = {case.name: compare(case.path, recording) for case, recording in zip(some, sharing.run(jobs))}
    assert {name: one.differences for name, one in told.items() if one.differences} == {}
    assert sum(one.entries > 0 for one in told.values()) > len(some) / 2
