"""One server, which imports torch once, serves all that is verified in a row, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradfix.core.codemod import Claim, Effect
from gradfix.pipeline import driver
from gradfix.pipeline.results import Outcome
from gradfix.verify import interpreter, runner, sandbox
from gradfix.verify.runner import Job, Runner, servers_kept, verify_rewrite

PROGRAM = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    net(torch.randn(4, 3)).square().mean().backward(retain_graph=True)
    optimizer.step()
"""
FIXTURE = Path(__file__).parents[1] / "fixtures" / "undetached_fake" / "conditional.py"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[str]]:
    """The servers that are started."""
    started: list[subprocess.Popen[str]] = []

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: object, **keywords: object) -> None:
            super().__init__(*args, **keywords)  # type: ignore[call-overload]
            started.append(self)

    monkeypatch.setattr(runner.subprocess, "Popen", Popen)
    return started


def proved(before: str, after: str) -> bool:
    evidence = verify_rewrite(
        Path("train.py"), before, after, Claim(), Effect.PRESERVES, python=sys.executable, seeds=(0,)
    )
    return evidence.outcome == "proved"


def test_verifications_in_a_row_share_a_server(
    servers: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []
    prepare = Runner._prepare
    monkeypatch.setattr(Runner, "_prepare", lambda self, job: (jobs.append(job), prepare(self, job))[1])
    once = PROGRAM.replace("retain_graph=True", "")
    twice = once.replace(".square()", ".square().clone()")
    interpreter._has_torch(sys.executable)  # These start processes of their own.
    runner._sandbox(sys.executable)
    servers.clear()
    with servers_kept():
        assert proved(PROGRAM, once)
        assert proved(once, twice)
        assert len(servers) == 1
        assert servers[0].poll() is None
    assert servers[0].poll() is not None
    # What the first has made is the original of the second, and runs once for each set of places watched.
    runs = [(job.watched, job.scout) for job in jobs if job.source == once and not job.fake]
    assert len(runs) == len(set(runs))


def test_a_verification_alone_ends_its_server(servers: list[subprocess.Popen[str]]) -> None:
    assert proved(PROGRAM, PROGRAM.replace("retain_graph=True", ""))
    assert all(server.poll() is not None for server in servers)


def test_what_a_run_has_left_is_removed_before_the_next_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[int] = []

    def runs(one: Runner, prepared: dict[str, tuple[Job, Path]]) -> Iterator[tuple[str, tuple[str, str]]]:
        for name in list(prepared):
            there.append(len([found for found in one._folder.iterdir() if found.is_dir()]))
            yield name, ("killed", "it was large")

    monkeypatch.setattr(Runner, "_run", runs)
    with Runner(sys.executable, level=sandbox.UNSANDBOXED) as one:
        one.run([Job(Path("train.py"), f"print({number})") for number in range(3)])
    assert there == [3, 2, 1]


def test_many_files_are_planned_by_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary, project = tmp_path / "temporary", tmp_path / "project"
    temporary.mkdir()
    project.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(driver, "WORTH_SERVERS", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    for name in ("one.py", "other.py"):
        (project / name).write_bytes(FIXTURE.read_bytes())
    options = driver.prepare([str(project)], driver.RequestedOptions(python=sys.executable))
    assert isinstance(options, driver.Options)
    planned = driver.plan([str(project)], options)
    assert [attempt.outcome for attempt in planned.attempts] == [Outcome.PROVED, Outcome.PROVED]
    assert planned.files[0].after == planned.files[1].after == FIXTURE.with_suffix(".fixed.py").read_bytes()
    # Servers that are left would have their folders here.
    assert not list(temporary.iterdir())
