"""How many training steps were followed is told in every format, kept in the cache, and can be asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes import ROOT, gradfix

FOLLOWED = """\
import torch
from torch import nn

net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 2):
    opt.zero_grad()
    net(x).mean().backward()
    opt.step()
"""
NEVER = """\
DEBUG = False
if DEBUG:
    loss.backward()
"""
HANDED_IN = """\
def train(net, opt, batches):
    for x in batches:
        opt.zero_grad()
        net(x).mean().backward()
        opt.step()
"""
REASON = "line 3 never runs: it is under `if DEBUG` in line 2, which never applies"
ADVICE = "give the constant the other value and check again"
FRAMEWORK = """\
import lightning as L

class Model(L.LightningModule):
    def training_step(self, batch, index):
        return self(batch).mean()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(FOLLOWED)
    (tmp_path / "b.py").write_text(NEVER)
    (tmp_path / "c.py").write_text("print('nothing is trained here')\n")
    return tmp_path


def check(project: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return gradfix("check", *arguments, cwd=project, env=env)


@pytest.mark.parametrize("form", ["text", "concise"])
def test_the_last_line_counts_them(project: Path, form: str) -> None:
    done = check(project, "--output-format", form)
    expected = "Checked 3 files, found nothing; followed 1 of 2 training steps (-v names the others)\n"
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, expected, b"")


def test_those_that_were_not_followed_are_named_where_more_is_asked_for(project: Path) -> None:
    done = check(project, "-v")
    assert done.stdout.endswith(b"; followed 1 of 2 training steps\n")
    assert done.stderr.decode() == f"note: b.py:3: the script: not followed: {REASON}; {ADVICE}\n"


def test_what_is_followed_under_an_assumption_counts_as_followed(project: Path) -> None:
    (project / "b.py").write_text(HANDED_IN)
    done = check(project, "--min-coverage", "100")
    assert done.returncode == 0
    assert done.stdout.endswith(b"2 of 2 training steps, 1 under an assumption (-v names the assumptions)\n")
    assert check(project, "-v").stderr.startswith(b"note: b.py:4: train: followed under an assumption: ")
    step = json.loads(check(project, "--output-format", "json").stdout)[-1]["training_steps"][1]
    assert step["status"] == "followed under an assumption"
    assert step["assumption"] and step["reason"] is None and step["advice"] is None


def test_json_has_a_record_of_each(project: Path) -> None:
    (element,) = json.loads(check(project, "--output-format", "json").stdout)
    assert (element["code"], element["message"]) == ("training-steps", "followed 1 of 2 training steps")
    followed, other = element["training_steps"]
    assert (followed["filename"], followed["name"]) == ("a.py", "the loop at line 6")
    assert (followed["status"], followed["reason"], followed["assumption"]) == ("followed", None, None)
    assert other == {
        "filename": "b.py",
        "cell": None,
        "location": {"row": 3, "column": 1},
        "kind": "script",
        "name": "the script",
        "status": "not followed",
        "assumption": None,
        "reason": REASON,
        "advice": ADVICE,
    }
    assert json.loads(check(project, "c.py", "--output-format", "json").stdout) == []


def test_sarif_has_the_count_and_a_notification_of_each_that_was_not_followed(project: Path) -> None:
    (run,) = json.loads(check(project, "--output-format", "sarif").stdout)["runs"]
    (invocation,) = run["invocations"]
    assert invocation["properties"] == {
        "trainingSteps": {"followed": 1, "assumed": 0, "undecided": 0, "not_followed": 1}
    }
    (note,) = invocation["toolExecutionNotifications"]
    assert (note["level"], note["message"]["text"]) == (
        "note",
        f"the script: not followed: {REASON}; {ADVICE}",
    )
    (location,) = note["locations"]
    assert location["physicalLocation"]["region"]["startLine"] == 3
    assert run["results"] == []


def test_github_shows_one_notice(project: Path) -> None:
    done = check(project, "--output-format", "github")
    assert done.stdout == b"::notice title=gradfix::followed 1 of 2 training steps\n"


def test_gitlab_has_no_place_for_it_in_its_report(project: Path) -> None:
    done = check(project, "--output-format", "gitlab")
    assert json.loads(done.stdout) == []
    assert done.stderr == b"note: followed 1 of 2 training steps\n"


@pytest.mark.parametrize(("minimum", "code"), [("50", 0), ("51", 1), ("0", 0), ("100", 1)])
def test_fewer_than_are_asked_for_are_an_error(project: Path, minimum: str, code: int) -> None:
    done = check(project, "-q", "--min-coverage", minimum)
    said = f"error: followed 1 of 2 training steps (50 %), and --min-coverage asks for {minimum} %\n"
    assert (done.returncode, done.stderr.decode()) == (code, said if code else "")


def test_where_nothing_is_trained_all_of_it_is_followed(project: Path) -> None:
    assert check(project, "c.py", "--min-coverage", "100").returncode == 0


def test_each_configuration_asks_for_its_own_files(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "b.py").rename(project / "sub" / "b.py")
    settings = project / "sub" / "pyproject.toml"
    settings.write_text("[tool.gradfix]\nmin-coverage = 80\n")
    done = check(project)
    assert done.returncode == 1
    said = "followed 0 of 1 training step (0 %), and min-coverage in sub/pyproject.toml asks for 80 %"
    assert done.stderr.decode() == f"error: {said}\n"
    assert check(project, "a.py").returncode == 0
    assert check(project, "--exit-zero").returncode == 0
    assert check(project, "--min-coverage", "50").returncode == 0
    settings.write_text("[tool.gradfix]\nmin-coverage = 101\n")
    refused = check(project, "sub")
    assert refused.returncode == 2
    assert b"tool.gradfix.min-coverage must be a percentage from 0 to 100" in refused.stderr


@pytest.mark.parametrize("option", ["--fix", "--diff", "--add-ignores", "--write-baseline"])
def test_what_does_not_print_findings_does_not_ask_for_it(project: Path, option: str) -> None:
    assert check(project, "--min-coverage", "1", option).returncode == 2


def test_standard_input_is_asked_for_it_too(project: Path) -> None:
    command = [sys.executable, "-m", "gradfix", "check", "-", "--min-coverage", "1"]
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=NEVER.encode(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr[:29]) == (1, b"error: followed 0 of 1 traini")


def test_what_is_kept_tells_the_same(project: Path) -> None:
    (project / "d.py").write_text(FRAMEWORK)
    keeping = {"GRADFIX_NO_CACHE": "", "GRADFIX_CACHE_DIR": str(project / "kept")}
    cold, warm = (check(project, "--output-format", "json", **keeping) for _ in range(2))
    assert (cold.stdout, cold.stderr) == (warm.stdout, warm.stderr)
    assert len(json.loads(warm.stdout)[-1]["training_steps"]) == 3
    assert len(list((project / "kept").rglob("*"))) > 4


def test_apply_says_so_where_it_has_nothing_else_to_say(project: Path) -> None:
    nothing = gradfix("apply", "--no-verify", "a.py", cwd=project)
    assert nothing.stdout == b"Checked 1 file, found nothing; followed 1 of 1 training step\n"
    faulty = FOLLOWED.replace("backward()", "backward(retain_graph=True)")
    (project / "a.py").write_text(faulty)
    fixed = gradfix("apply", "--no-verify", "--min-severity", "info", "a.py", cwd=project)
    assert fixed.stdout.endswith(b"Fixed 1 finding in 1 file (1 unverified)\n")
    assert b"training step" not in fixed.stdout


def test_the_findings_schema_describes_the_records(project: Path) -> None:
    schema: dict[str, Any] = json.loads(gradfix("schema", "findings", cwd=project).stdout)
    statuses = schema["$defs"]["Status"]["enum"]
    assert sorted(statuses) == ["followed", "followed under an assumption", "not decided", "not followed"]
