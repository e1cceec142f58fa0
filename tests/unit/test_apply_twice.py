"""``apply --dry-run`` shows what ``apply`` writes, byte for byte, and a second ``apply`` writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cases import CASES
from fakes import git

from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, RequestedOptions
from gradfix.pipeline.results import Outcome, Patch, Plan
from gradfix.system import progress

CASES_BY_CODEMOD = {case.fault: case for case in CASES if case.fixed is not None}


def notebook(text: str) -> bytes:
    """A notebook with a statement of the top in each cell, roughly."""
    parts = text.replace("\n\n\n", "\0").split("\0")
    cells = [
        {"cell_type": "code", "execution_count": None, "id": f"c{number}", "metadata": {}, "outputs": []}
        | {"source": part.splitlines(keepends=True)}
        for number, part in enumerate(parts)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


WRITINGS: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "lf": (".py", str.encode),
    "crlf": (".py", lambda text: text.replace("\n", "\r\n").encode()),
    "bom": (".py", lambda text: text.encode("utf-8-sig")),
    "no newline at the end": (".py", lambda text: text.rstrip("\n").encode()),
    "notebook": (".ipynb", notebook),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "project"
    folder.mkdir()
    git("init", "-q", ".", cwd=folder)
    monkeypatch.chdir(folder)
    yield folder
    progress.of(0)


def plan(verify: bool = False, unsafe_fixes: bool = False) -> Plan:
    options = driver.prepare(["."], RequestedOptions(verify=verify, unsafe_fixes=unsafe_fixes))
    assert isinstance(options, Options)
    return driver.plan(["."], options)


def contents(project: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(project.iterdir()) if path.is_file()}


def applied_in_full(project: Path, **requested: bool) -> Plan:
    """Hold a dry run, an ``apply`` and a second one together; the plan of the first."""
    before = contents(project)
    shown = plan(**requested)
    patch = driver.patch(shown)
    assert isinstance(patch, Patch)
    assert contents(project) == before
    (project / ".git" / "shown.patch").write_bytes(patch.data)
    git("apply", ".git/shown.patch", cwd=project)
    by_git = contents(project)
    for name, data in before.items():
        (project / name).write_bytes(data)
    driver.write(shown if requested.get("verify") else plan(**requested))
    assert contents(project) == by_git
    assert not driver.write(plan(**requested)).all_problems
    assert contents(project) == by_git
    return shown


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("writing", WRITINGS)
def test_the_fixtures_of_all_codemods(project: Path, writing: str, unsafe: bool) -> None:
    ending, write = WRITINGS[writing]
    for number, case in enumerate(CASES_BY_CODEMOD.values()):
        if number % len(WRITINGS) == list(WRITINGS).index(writing):
            text = case.path.read_text(encoding="utf-8").replace("\r\n", "\n")
            (project / f"{case.path.parent.name}{ending}").write_bytes(write(text))
    assert applied_in_full(project, unsafe_fixes=unsafe).attempts


@pytest.mark.long
@pytest.mark.parametrize("unsafe", [False, True])
def test_all_fixtures(project: Path, unsafe: bool) -> None:
    for number, case in enumerate(CASES):
        (project / f"case_{number}.py").write_bytes(case.path.read_bytes())
    assert applied_in_full(project, unsafe_fixes=unsafe).attempts


# ---------------------------------------------------------------------------- several files

STEPS = """\
def judge_step(judge, opt_judge, made, real):
    loss = judge(made).mean() - judge(real).mean()
    opt_judge.zero_grad()
    loss.backward()
    opt_judge.step()


def fit_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()
"""
SCRIPT = """\
import torch
from torch import nn

from steps import fit_step, judge_step

torch.manual_seed(0)
maker, judge = nn.Linear(3, 3), nn.Linear(3, 1)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
opt_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
for _ in range(4):
    made = maker(torch.randn(4, 3))
    judge_step(judge, opt_judge, made, torch.randn(4, 3))
    loss = -judge(made).mean()
    opt_maker.zero_grad()
    loss.backward()
    opt_maker.step()
    fit_step(maker, opt_maker, torch.randn(4, 3), torch.randn(4, 3))
"""
FIXED_STEPS = STEPS.replace("backward(retain_graph=True)", "backward()")
FIXED_SCRIPT = SCRIPT.replace("opt_judge, made,", "opt_judge, made.detach(),")


@pytest.mark.parametrize("verify", [False, True])
def test_what_can_be_mended_in_either_of_two_files_is_mended_in_one(project: Path, verify: bool) -> None:
    """The detach would do in the script, and in the function that it calls.

    While the script raises, nothing that comes later can be proved in the module.
    """
    (project / "steps.py").write_text(STEPS)
    (project / "train.py").write_text(SCRIPT)
    made = applied_in_full(project, verify=verify)
    texts = {file.path: file.text for file in made.files}
    assert texts["steps.py"].count("detach") + texts["train.py"].count("detach") == 1
    if verify:
        assert texts == {"steps.py": FIXED_STEPS, "train.py": FIXED_SCRIPT}
        assert {attempt.outcome for attempt in made.attempts} == {Outcome.PROVED}
        told = [one.evidence.standins for one in made.attempts if one.evidence is not None]
        assert told == [("train.py by what it is rewritten to",), ()]  # In the order of their paths.


def test_a_module_that_stays_as_it_is_tells_of_what_is_rewritten(project: Path) -> None:
    (project / "judging.py").write_text(STEPS)
    (project / "middle.py").write_text("from judging import fit_step, judge_step\n")
    (project / "train.py").write_text(SCRIPT.replace("from steps", "from middle"))
    texts = [file.text for file in applied_in_full(project).files]
    assert sum(text.count("detach") for text in texts) == 1
