"""All proofs together may have a limit of time: what it leaves is said, and made the next time."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import gradfix, standard_codemods

from gradfix.core.codemod import Finding
from gradfix.pipeline import driver, options, proof_times, proving
from gradfix.pipeline.options import Options, RequestedOptions, TimeLimit
from gradfix.pipeline.proof_times import ProofTimes
from gradfix.pipeline.results import Attempt, FilePlan, FileReport, Outcome, Plan
from gradfix.project.traces import digest
from gradfix.report import json as as_json
from gradfix.report import text
from gradfix.system import progress
from gradfix.verify.evidence import Evidence

TRAINS = "# x.backward()\n"
PROOF = 4.0
"""Seconds that each proof takes here."""


class Clock:
    """A clock that goes on when something is proved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.proved: list[str] = []
        ticking = types.SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(options, "time", ticking)
        monkeypatch.setattr(driver, "time", ticking)
        monkeypatch.setattr(proving, "_evidence", self._prove)

    def _prove(self, before: driver.Analysis, *_: object) -> Evidence:
        self.now += PROOF
        self.proved.append(before.source.path)
        if "breaks" in before.source.text:
            raise IndexError("a run was ended before it had made its optimizers")
        if "never" in before.source.text:
            return Evidence("not run", "a package is missing")
        return Evidence("refuted" if "wrong" in before.source.text else "proved", "")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Clock]:
    standard_codemods(tmp_path / "codemods")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("GRADFIX_CACHE_DIR", str(tmp_path / "kept"))
    yield Clock(monkeypatch)
    progress.of(0)


def put(**files: str) -> None:
    for name, content in files.items():
        Path(f"{name}.py").write_text(content + TRAINS)


def apply(seconds: float | None, *, unproved: bool = False, dry: bool = False) -> Plan:
    requested = RequestedOptions(
        codemods=("../codemods",),
        cached=True,
        unproved=unproved,
        time_limit=None if seconds is None else TimeLimit.from_now(seconds),
    )
    prepared = driver.prepare(["."], requested)
    assert isinstance(prepared, Options)
    plan = driver.plan(["."], prepared)
    return plan if dry else driver.write(plan)


def outcomes(plan: Plan) -> dict[str, list[str]]:
    return {
        file.path: [attempt.reason or str(attempt.outcome) for attempt in file.attempts]
        for file in plan.files
    }


BEGUN = "begun, and not finished within the 10 s of --seconds"
NOT_REACHED = "not reached within the 10 s of --seconds"


def test_what_is_not_reached_is_unproved_said_and_not_written(clock: Clock) -> None:
    put(a="bad\n", b="bad\nx\n", c="bad\nx\nx\n", d="bad\nx\nx\nx\n")
    plan = apply(10)
    assert outcomes(plan) == {"a.py": ["proved"], "b.py": ["proved"], "c.py": [BEGUN], "d.py": [NOT_REACHED]}
    assert [Path(f"{name}.py").read_text().startswith("good") for name in "abcd"] == [
        *(True, True),
        *(False, False),
    ]
    assert {one.outcome for one in plan.attempts if one.out_of_time} == {Outcome.UNVERIFIED}
    assert plan.exit_code == 1
    said = json.loads(as_json.of_plan(plan))
    assert [fix["out_of_time"] for file in said for fix in file["fixes"]] == [False, False, True, True]
    assert "2 not proved in time and not applied" in text.summary_of_plan(plan)
    assert text.out_of_time(plan, 10, goes_on=True).startswith("2 rewrites in 2 files not proved within 10 s")
    shown = "".join(text.Text(False).plan(plan, in_full=False))
    assert f"not applied, unverified (preserves): say good: {NOT_REACHED}" in shown


def test_the_next_apply_goes_on_where_the_last_one_ended(clock: Clock) -> None:
    put(a="bad\nnever\n", b="bad\nnever\nx\n", c="bad\nx\nx\nx\nx\n", d="bad\nx\nx\nx\nx\nx\nx\n")
    apply(10)
    assert clock.proved == ["a.py", "b.py", "c.py"]
    clock.proved.clear()
    apply(10)  # What took the whole time, and more, comes after what has not been tried.
    assert clock.proved == ["d.py", "c.py", "a.py"]
    assert outcomes(apply(None)) == {"a.py": ["a package is missing"], "b.py": ["a package is missing"]}


def test_what_a_dry_run_has_proved_is_what_is_written(clock: Clock) -> None:
    put(a="bad\nnever\n", b="bad\nx\nx\n", c="bad\nx\nx\nx\n")
    dry = apply(10, dry=True)
    written = apply(10)
    shown = {file.path: file.after for file in dry.files if file.applied}
    assert shown == {"b.py": b"good\nx\nx\n# x.backward()\n"}
    assert {path: Path(path).read_bytes() for path in shown} == shown
    assert outcomes(written)["b.py"] == ["proved"]


def test_within_a_file_a_finding_that_was_not_reached_is_told_once(clock: Clock) -> None:
    put(a="bad\nstubborn\nbroken\nbad\n")
    (file,) = apply(6).files
    assert [attempt.finding.span.line for attempt in file.attempts] == [1, 2, 3, 4]
    assert [attempt.out_of_time for attempt in file.attempts] == [False, True, True, True]
    assert Path("a.py").read_text().startswith("good\nstubborn\n")


def test_what_was_refuted_stays_so_when_the_time_is_over(clock: Clock) -> None:
    put(a="bad\nwrong\n")
    assert outcomes(apply(6, unproved=True)) == {"a.py": ["refuted"]}
    assert Path("a.py").read_text().startswith("bad\n")


def test_what_is_not_reached_is_written_where_unproved_fixes_are(clock: Clock) -> None:
    put(a="bad\n", b="bad\nbad\nx\n")
    plan = apply(4, unproved=True)
    assert len(clock.proved) == 1
    assert Path("b.py").read_text().startswith("good\ngood\n")
    assert [attempt.out_of_time for attempt in plan.attempts] == [True, True, True]


def test_what_fails_for_want_of_time_has_not_failed(clock: Clock) -> None:
    put(a="bad\nbreaks\n", b="bad\nbreaks\nx\n")
    failed, late = outcomes(apply(6)).values()
    assert "verification failed" in failed[0] and "not finished within the 6 s" in late[0]


# ---------------------------------------------------------------------------- the order


def planned(path: str, data: bytes, *, applied: bool, late: bool = False) -> FilePlan:
    attempt = Attempt(
        *(Finding("x", "x", None, (), ()), None, "", ""),  # type: ignore[arg-type]
        Outcome.PROVED if applied else Outcome.UNVERIFIED,
        evidence=Evidence("proved" if applied else "not run", ""),
        withheld=not applied,
        out_of_time=late,
    )
    return FilePlan(path, data, data, "", (attempt,))


def test_proofs_come_in_the_order_of_what_is_known_of_them(tmp_path: Path) -> None:
    times = ProofTimes(str(tmp_path))
    times.keep(planned("unproved.py", b"1", applied=False), 1.0)
    times.keep(planned("given up.py", b"1", applied=False, late=True), 1.0)
    times.keep(planned("changed.py", b"1", applied=False), 2.0)
    times.keep(planned("slow.py", b"1", applied=True), 30.0)
    times.keep(planned("quick.py", b"1", applied=True), 2.0)
    files = {
        **dict.fromkeys(("unproved.py", "given up.py", "slow.py", "quick.py"), b"1"),
        "changed.py": b"2",
        "large.py": b"22",
        "small.py": b"2",
    }
    ordered = sorted(files, key=lambda path: times.order(path, files[path], FileReport(path)))
    assert ordered == [
        *("quick.py", "slow.py"),
        *("small.py", "large.py", "changed.py"),
        *("given up.py", "unproved.py"),
    ]


@pytest.mark.parametrize("damaged", [b"", b"[]", b'["x", "y", "applied"]', b'["x", 1, "else"]', b"{", b"7"])
def test_what_is_damaged_is_not_known(tmp_path: Path, damaged: bytes) -> None:
    times = ProofTimes(str(tmp_path))
    unknown = times.order("a.py", b"", FileReport("a.py"))
    times.keep(planned("a.py", b"", applied=True), 3.0)
    assert times.order("a.py", b"", FileReport("a.py")) != unknown
    (tmp_path / proof_times._name("a.py")).write_bytes(damaged)
    assert times.order("a.py", b"", FileReport("a.py")) == unknown


def test_what_comes_with_the_code_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("GRADFIX_CACHE_DIR", str(tmp_path / "cache"))
    assert proof_times.opened([str(tmp_path)]) == ProofTimes(None)
    ProofTimes(None).keep(planned("a.py", b"", applied=True), 3.0)
    assert digest(b"") and not (tmp_path / "cache").exists()


# ---------------------------------------------------------------------------- the command line

ENDLESS = """\
import time

import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def bad(x):
    return model(x)


good = bad
while True:
    loss = bad(torch.ones(2, 3)).mean()
    optimizer.zero_grad()
    loss.backward()
    time.sleep(100)
    optimizer.step()
"""


def test_a_run_that_is_under_way_is_ended_with_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_codemods(tmp_path / "codemods")
    project, scratch = tmp_path / "project", tmp_path / "scratch"
    project.mkdir()
    scratch.mkdir()
    (project / "train.py").write_text(ENDLESS)
    done = gradfix(
        *("apply", "--codemods", "../codemods", "--select", "bad-word", "--seconds", "8"),
        cwd=project,
        env={"TMPDIR": str(scratch)},
    )
    said = done.stdout.decode()
    assert "begun, and not finished within the 8 s of --seconds" in said, said + done.stderr.decode()
    assert b"note: 1 rewrite in 1 file not proved within 8 s" in done.stderr
    assert done.returncode == 1
    assert (project / "train.py").read_text() == ENDLESS
    started = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in started if str(scratch).encode() in command]
    assert list(scratch.iterdir()) == []


def test_who_is_asked_has_no_limit(tmp_path: Path) -> None:
    refused = gradfix("apply", "-i", "--seconds", "5", cwd=tmp_path)
    assert (refused.returncode, b"--seconds" in refused.stderr) == (2, True)
