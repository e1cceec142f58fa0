"""Scripts that are run as modules, through others, and with the files that they write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.pipeline.results import Outcome
from gradfix.verify.command import Command, of_module
from gradfix.verify.jobs import Job

pytestmark = pytest.mark.usefixtures("servers")

TRAINER = """import torch

def train(network, batches):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for x, t in batches:
        loss = (network(x) - t).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""
MAIN = """import sys
import torch
from nets.trainer import train

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
train(torch.nn.Linear(2, 1), [(torch.ones(4, 2), torch.ones(4, 1))] * 3)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nets").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "nets" / "__init__.py").touch()
    (tmp_path / "nets" / "trainer.py").write_text(TRAINER)
    (tmp_path / "nets" / "start.py").write_text(MAIN.replace("nets.trainer", ".trainer"))
    (tmp_path / "main.py").write_text(MAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_module_is_run_as_python_runs_it(project: Path, sharing: Any) -> None:
    start = project / "nets" / "start.py"
    source = start.read_text() + "assert __package__ == 'nets' and __spec__.name == 'nets.start'\n"
    as_script = Job(start, source)
    as_module = Job(start, source, of_module("nets.start", project, ["5"]))
    script, module = sharing.run([as_script, as_module])
    assert script.uncaught is not None and "relative import" in script.uncaught.message
    assert module.ending == "finished" and len(module.steps) == 3, module.uncaught


def test_a_module_is_run_with_another_text_through_its_script(project: Path, sharing: Any) -> None:
    trainer = project / "nets" / "trainer.py"
    command = Command(entry=project / "main.py")
    twice = TRAINER.replace("    for x, t in batches:", "    for x, t in batches[:2]:")
    jobs = [Job(trainer, TRAINER, command), Job(trainer, twice, command), Job(trainer, TRAINER)]
    whole, cut, alone = sharing.run(jobs)
    assert (len(whole.steps), len(cut.steps), len(alone.steps)) == (3, 2, 0)
    assert whole.backwards[0].place.line == 8 and whole.backwards[0].place.receiver == "loss"


@pytest.mark.parametrize("script", [None, "main.py"], ids=["found", "named"])
def test_a_fix_in_a_module_is_proved_through_the_script_that_imports_it(
    script: str | None, project: Path
) -> None:
    options = driver.prepare(["nets/trainer.py"], RequestedOptions(python=sys.executable, script=script))
    assert isinstance(options, Options)
    (file,) = driver.plan(["nets/trainer.py"], options).files
    assert [(one.finding.code, one.outcome) for one in file.attempts] == [
        ("needless-retain-graph", Outcome.PROVED)
    ], [one.reason for one in file.attempts]


def test_what_stops_the_scripts_that_import_a_module_is_said(project: Path) -> None:
    (project / "main.py").write_text("raise SystemExit('no data')\n" + MAIN)
    options = driver.prepare(["nets/trainer.py"], RequestedOptions(python=sys.executable))
    assert isinstance(options, Options)
    (file,) = driver.plan(["nets/trainer.py"], options).files
    (attempt,) = file.attempts
    assert attempt.outcome is Outcome.UNVERIFIED
    assert attempt.reason.startswith("backward() was never called; run through ")
    assert "main.py: the script left at main.py:1 with exit code no data" in attempt.reason
