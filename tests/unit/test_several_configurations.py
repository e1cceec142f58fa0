"""Files under several configurations, run together: each is run, and judged, as its own one says."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from fakes import gradfix

from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, RequestedOptions
from gradfix.pipeline.results import Outcome

SCRIPT = """\
import sys
import torch
from torch import nn

assert sys.argv[1:] == {arguments}, sys.argv
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward({how})
    optimizer.step()
"""
WASTEFUL = "retain_graph=True"
ARGUMENTS = {"one": ["--steps", "3"], "two": ["--epochs", "1"]}


def write(folder: Path, how: str) -> Path:
    """Two projects beside each other, whose scripts run only with the arguments of their configuration."""
    for name, arguments in ARGUMENTS.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "train.py").write_text(SCRIPT.format(arguments=arguments, how=how))
        command = f"python train.py {' '.join(arguments)}"
        (folder / name / "pyproject.toml").write_text(f"[tool.gradfix.verify]\ncommand = '{command}'\n")
    return folder


def apply(folder: Path, *arguments: str) -> list[tuple[str, list[str]]]:
    """The outcomes of the fixes of each file."""
    done = gradfix("apply", "--output-format", "json", *arguments, cwd=folder)
    assert done.returncode in (0, 1), done.stderr.decode()
    return [(one["filename"], [fix["outcome"] for fix in one["fixes"]]) for one in json.loads(done.stdout)]


def test_each_fix_is_proved_by_the_command_of_its_own_configuration(tmp_path: Path) -> None:
    folder = write(tmp_path, WASTEFUL)
    assert apply(folder, ".") == [("one/train.py", ["proved"]), ("two/train.py", ["proved"])]
    for name in ARGUMENTS:
        assert "loss.backward()" in (folder / name / "train.py").read_text()


def test_an_environment_is_made_once_for_all_whose_configuration_names_no_interpreter(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path, WASTEFUL)
    (folder / "three").mkdir()
    (folder / "three" / "train.py").write_text(SCRIPT.format(arguments=[], how=WASTEFUL))
    made: list[list[str]] = []

    def make(paths: Sequence[Path]) -> str:
        made.append([path.parent.name for path in paths])
        return sys.executable

    paths = [str(folder / name) for name in ("one", "three", "two")]
    options = driver.prepare(paths, RequestedOptions(environment=make))
    assert isinstance(options, Options)
    plan = driver.plan(paths, options)
    assert [attempt.outcome for attempt in plan.attempts] == [Outcome.PROVED] * 3
    assert made == [["one", "three", "two"]]
    assert all(attempt.evidence and attempt.evidence.interpreter == "--env" for attempt in plan.attempts)


def test_repairs_in_folders_are_judged_by_the_configuration_of_each_old_file(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old", WASTEFUL), write(tmp_path / "new", "")
    for folder, how in ((old, WASTEFUL), (new, "")):
        (folder / "three").mkdir()
        (folder / "three" / "train.py").write_text(SCRIPT.format(arguments=[], how=how))
    silent = "[tool.gradfix]\nignore = ['needless-retain-graph']\n"
    (old / "three" / "pyproject.toml").write_text(silent)
    done = gradfix("verify", "--before", old, new, "--output-format", "json", cwd=tmp_path)
    judged = {
        Path(one["filename"]).parent.name: [mistake["outcome"] for mistake in one["mistakes"]]
        for one in json.loads(done.stdout)
    }
    assert judged == {"one": ["accepted"], "two": ["accepted"], "three": []}, done.stdout.decode()
