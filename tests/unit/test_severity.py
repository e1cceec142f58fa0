"""How bad a finding is: by what it does and what its codemod says; what is left out, and where it is told."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from fakes import gradfix, write_codemod

from gradfix.core.codemod import SEVERITY, Claim, Effect, Finding, Fix, Severity, severity_of
from gradfix.core.span import Span
from gradfix.rules import catalog
from gradfix.watch import running

PLACE = Span(1, 0, 1, 1)
TRAINING = """import torch

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    {}
    optimizer.step()
"""
NAMED = TRAINING.format("loss = net(torch.randn(4, 3)).square().mean()\n    loss.backward(retain_graph=True)")
UNNAMED = TRAINING.format("net(torch.randn(4, 3)).square().mean().backward(retain_graph=True)")
PARTLY_NAMED = TRAINING.format(
    "said = net(torch.randn(4, 3))\n    (said - 1).square().mean().backward(retain_graph=True)"
)
RAISING = """import torch

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
said = net(torch.randn(4, 3)).exp()
for _ in range(3):
    optimizer.zero_grad()
    loss = said.square().mean()
    loss.backward(retain_graph=False)
    loss.backward()
    optimizer.step()
"""


def finding(*fixes: Fix, **others: object) -> Finding:
    return Finding("some-code", "something", PLACE, fixes=fixes)._replace(**others)


@pytest.mark.parametrize("usual", Severity)
def test_what_raises_or_trains_nothing_is_an_error_whatever_is_usual(usual: Severity) -> None:
    repairs = Fix("mend it", Effect.REPAIRS, ())
    raises = Fix("choose", Effect.CHANGES, (), Claim(raises="E1"))
    assert {severity_of(one, usual) for one in (finding(repairs), finding(raises), finding(raises="E4"))} == {
        Severity.ERROR
    }


def test_work_that_is_wasted_is_no_error() -> None:
    preserves = Fix("save it", Effect.PRESERVES, ())
    assert severity_of(finding(preserves), Severity.ERROR) is Severity.WARNING
    assert severity_of(finding(preserves), Severity.INFO) is Severity.INFO


def test_a_codemod_may_say_it_of_a_finding() -> None:
    repairs = Fix("mend it", Effect.REPAIRS, ())
    assert severity_of(finding(repairs, severity=Severity.INFO), Severity.ERROR) is Severity.INFO


@pytest.mark.parametrize("codemod", catalog.load().codemods, ids=lambda codemod: codemod.name)
def test_every_codemod_says_how_bad_its_findings_are(codemod: catalog.Codemod) -> None:
    assert re.search(rf"^{SEVERITY}{codemod.severity}\b", codemod.documentation, re.MULTILINE), (
        "add a paragraph: Severity: error. (or warning, or info)"
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a finding of each severity."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "a_raising.py").write_text(RAISING)
    (tmp_path / "b_named.py").write_text(NAMED)
    (tmp_path / "c_unnamed.py").write_text(UNNAMED)
    return tmp_path


def severities(project: Path, *options: str) -> dict[str, set[str]]:
    done = gradfix("check", "--output-format", "json", *options, cwd=project)
    reported: dict[str, set[str]] = {}
    for item in json.loads(done.stdout)[:-1]:
        reported.setdefault(item["filename"], set()).add(item["severity"])
    return reported


def test_the_least_severity_is_a_warning_unless_something_else_is_asked_for(project: Path) -> None:
    error, warning, info = (
        {"a_raising.py": {"error"}},
        {"b_named.py": {"warning"}},
        {"c_unnamed.py": {"info"}},
    )
    assert severities(project) == severities(project, "--min-severity", "warning") == error | warning
    assert severities(project, "--min-severity", "error") == error
    assert severities(project, "--min-severity", "info") == error | warning | info


def test_the_configuration_says_it_and_the_command_line_wins(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.gradfix]\nmin-severity = "error"\n')
    assert set(severities(project)) == {"a_raising.py"}
    assert len(severities(project, "--min-severity", "info")) == 3
    (project / "pyproject.toml").write_text('[tool.gradfix]\nmin-severity = "bad"\n')
    done = gradfix("check", cwd=project)
    assert b"tool.gradfix.min-severity must be one of error, warning, info" in done.stderr
    assert done.returncode == 2


def test_what_is_in_the_cache_does_not_answer_for_another_severity(project: Path) -> None:
    before = severities(project)
    assert severities(project, "--min-severity", "info") != before
    assert severities(project) == before


def test_apply_leaves_alone_what_is_less_bad(project: Path) -> None:
    gradfix("apply", "--no-verify", cwd=project)
    assert "retain_graph" not in (project / "b_named.py").read_text()
    assert (project / "c_unnamed.py").read_text() == UNNAMED
    gradfix("apply", "--no-verify", "--min-severity", "info", cwd=project)
    assert "retain_graph" not in (project / "c_unnamed.py").read_text()


def test_a_graph_that_a_variable_holds_in_part_is_kept(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PARTLY_NAMED)
    assert severities(tmp_path) == {"train.py": {"warning"}}


def test_it_is_told_in_the_terminal(project: Path) -> None:
    reported = gradfix("check", "--min-severity", "info", cwd=project).stdout.decode()
    assert re.search(r"^a_raising.py:\d+:\d+: [a-z-]+: error: ", reported, re.MULTILINE)
    assert re.search(r"^b_named.py:\d+:\d+: needless-retain-graph: warning: ", reported, re.MULTILINE)
    assert re.search(r"^c_unnamed.py:\d+:\d+: needless-retain-graph: info: ", reported, re.MULTILINE)
    assert re.search(r"^Found 4 findings \(2 errors, 1 warning, 1 info\) in 3 files", reported, re.MULTILINE)
    assert re.search(r"^stale-forward +error +", gradfix("list", cwd=project).stdout.decode(), re.MULTILINE)
    explained = gradfix("explain", "--full", "needless-retain-graph", cwd=project).stdout.decode()
    assert "\nSeverity: warning, or an info" in explained


def test_run_hands_it_on_to_what_explains_the_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RAISING)
    done = gradfix("run", "--min-severity", "error", "train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert b"= loss-backpropagated-twice: " in done.stderr
    command = running.command([str(tmp_path / "train.py")], sys.executable, min_severity=Severity.INFO)
    assert isinstance(command, list)
    assert json.loads(command[3])[-2:] == ["--min-severity", "info"]


def test_run_tells_it_by_the_configuration_that_is_named_and_in_colour(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RAISING)
    (tmp_path / "other.toml").write_text("[tool.gradfix]\nignore = ['loss-backpropagated-twice']\n")
    done = gradfix("run", "--config", "other.toml", "--color", "always", "train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert b"loss-backpropagated-twice" not in done.stderr and b"\x1b[1;34m|" in done.stderr
    done = gradfix("run", "--config", "none.toml", "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == b"error: none.toml: cannot be read: No such file or directory\n"


def test_a_codemod_that_says_nothing_warns(tmp_path: Path) -> None:
    write_codemod(tmp_path, "bad-word", "bad")
    found = catalog.load([str(tmp_path)]).get("bad-word")
    assert isinstance(found, catalog.Codemod)
    assert found.severity is Severity.WARNING
