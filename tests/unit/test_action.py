"""The action for GitHub, and the jobs of examples/ci: what they name is pinned, and their shell is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import ROOT
from test_run import GAN

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXAMPLES = sorted((ROOT / "examples" / "ci").glob("*.yml"))
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"] if "run" in step}
FAULTY = (ROOT / "examples" / "workshop" / "glyph_forge.py").read_text(encoding="utf-8")
SHELLCHECK = Path(sys.executable).with_name("shellcheck")


def values(mapping: Any, key: str) -> list[Any]:
    """All values of ``key`` in what was read from YAML."""
    if isinstance(mapping, list):
        return [found for one in mapping for found in values(one, key)]
    if not isinstance(mapping, dict):
        return []
    own = [mapping[key]] if key in mapping else []
    return own + [found for one in mapping.values() for found in values(one, key)]


def run_step(name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """One of the action's scripts, as GitHub starts it, with an installed gradfix."""
    beside = folder.parent / "runner"
    beside.mkdir(exist_ok=True)
    script = beside / f"{name}.sh"
    script.write_text(STEPS[name]["run"])
    environment = {
        **os.environ,
        "GITHUB_OUTPUT": str(beside / "output"),
        "GITHUB_STEP_SUMMARY": str(beside / "summary.md"),
        "GITHUB_WORKSPACE": str(folder),
        "RUNNER_TEMP": str(beside),
        "BIN": os.path.dirname(sys.executable),
        **{key: value["default"] for key, value in DEFAULTS.items()},
        **variables,
    }
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


DEFAULTS = {
    variable: ACTION["inputs"][name]
    for variable, name in (("PATHS", "paths"), ("ARGS", "args"), ("SARIF", "sarif-file"), ("FAIL", "fail"))
}


def outputs(folder: Path) -> dict[str, str]:
    text = (folder.parent / "runner" / "output").read_text(encoding="utf-8")
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(FAULTY)
    return folder


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("action.yml", "github-actions"),
        ("examples/ci/github.yml", "github-workflows"),
        ("examples/ci/check-github.yml", "github-workflows"),
        ("examples/ci/gitlab.yml", "gitlab-ci"),
        ("examples/ci/check-gitlab.yml", "gitlab-ci"),
    ],
)
def test_what_ci_reads_is_valid(path: str, schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_says_what_an_action_has_to_say() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(one["description"] and "default" in one for one in ACTION["inputs"].values())
    assert all(one["description"] and one["value"] for one in ACTION["outputs"].values())
    named = set(re.findall(r"\binputs\.([\w-]+)", json.dumps(ACTION)))
    assert named == set(ACTION["inputs"])
    # What stands in a script can be one: inputs come as variables.
    assert not any("${{" in step["run"] for step in STEPS.values())
    assert all(step["shell"] == "bash" for step in STEPS.values())


@pytest.mark.parametrize("path", [ROOT / "action.yml", *EXAMPLES], ids=lambda path: path.name)
def test_what_is_used_is_pinned_to_a_commit(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    for used in values(content, "uses"):
        assert re.fullmatch(r"[\w-]+/[\w./-]+@[0-9a-f]{40}", used), used
    for installed in re.findall(r"pip install (.*)", path.read_text(encoding="utf-8")):
        # The name is on no index: whoever took it there would run code beside the token.
        if "gradfix" in installed:
            assert re.fullmatch(r'"gradfix(\[bot\])? @ git\+\$GRADFIX_URL@\$GRADFIX_COMMIT"', installed)


def scripts() -> list[tuple[str, str]]:
    """The shell of the action and of the jobs."""
    found = [(f"action.yml, {name}", step["run"]) for name, step in STEPS.items()]
    for path in EXAMPLES:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        runs = values(content, "run") + values(content, "script") + values(content, "before_script")
        text = ["\n".join(one) if isinstance(one, list) else one for one in runs]
        found += [(f"{path.name}, {number}", script) for number, script in enumerate(text)]
    return found


@pytest.mark.skipif(not SHELLCHECK.exists(), reason="shellcheck is not installed")
@pytest.mark.parametrize(("name", "script"), scripts(), ids=[name for name, _ in scripts()])
def test_the_shell_is_clean(name: str, script: str) -> None:
    command = [str(SHELLCHECK), "--shell", "bash", "--severity", "style", "-"]
    # What GitHub puts in is no shell.
    text = re.sub(r"\$\{\{.*?\}\}", "value", script)
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_findings_go_where_github_looks_for_them(project: Path) -> None:
    done = run_step("check", project)
    assert done.returncode == 0, done.stderr
    assert outputs(project) == {"findings": "1", "exit-code": "1", "sarif-file": "gradfix.sarif"}
    (run,) = json.loads((project / "gradfix.sarif").read_text())["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["undetached-fake"]
    assert done.stdout.startswith("::error title=gradfix (undetached-fake),file=train.py,line=")
    summary = (project.parent / "runner" / "summary.md").read_text()
    assert summary.startswith("### gradfix\n\n<pre>\ntrain.py:")
    assert summary.endswith(
        "Found 1 finding in 1 file, 1 fixable with `gradfix apply`; followed 1 of 1 training step\n</pre>\n"
    )
    verdict = run_step("verdict", project, CODE="1")
    assert verdict.returncode == 1
    assert run_step("verdict", project, CODE="1", FAIL="false").returncode == 0


def test_what_is_right_passes(project: Path) -> None:
    (project / "train.py").write_text("print(1)\n")
    assert run_step("check", project).returncode == 0
    assert outputs(project) == {"findings": "0", "exit-code": "0", "sarif-file": "gradfix.sarif"}
    assert run_step("verdict", project, CODE="0").returncode == 0


def test_what_could_not_be_done_fails_the_job_whatever_is_asked_for(project: Path) -> None:
    (project / "train.py").write_text("loss.backward(\n")
    assert run_step("check", project).returncode == 0
    assert outputs(project)["exit-code"] == "2"
    assert "syntax-error" in (project.parent / "runner" / "summary.md").read_text()
    assert run_step("verdict", project, CODE="2", FAIL="false").returncode == 2


def test_an_option_that_there_is_not_is_told(project: Path) -> None:
    assert run_step("check", project, ARGS="--no-such-option").returncode == 0
    assert outputs(project)["exit-code"] == "2"
    assert "--no-such-option" in (project.parent / "runner" / "summary.md").read_text()


def test_inputs_of_several_lines_are_no_shell(project: Path) -> None:
    (project / "a b").mkdir()
    (project / "a b" / "$(touch hit).py").write_text(FAULTY)
    (project / "train.py").unlink()
    done = run_step("check", project, PATHS="\n  a b\n\n", ARGS="--select\nundetached-fake; touch hit\n")
    assert done.returncode == 0
    assert outputs(project)["exit-code"] == "2"  # There is no codemod of that name.
    done = run_step("check", project, PATHS="\n  a b\n\n", ARGS="--select\nundetached-fake\n")
    assert outputs(project)["findings"] == "1"
    assert not (project / "hit").exists()


def test_code_in_the_summary_is_text(project: Path) -> None:
    line = "    verdict = critic(picture)"
    (project / "train.py").write_text(GAN.replace(line, f"{line}  # </pre><img src=x> ```"))
    run_step("check", project)
    summary = (project.parent / "runner" / "summary.md").read_text()
    assert "&lt;/pre&gt;&lt;img src=x&gt;" in summary
    assert summary.count("</pre>") == 1


@pytest.mark.long
def test_it_is_installed_from_its_own_commit(project: Path) -> None:
    done = run_step("install", project, ACTION=str(ROOT), PYTHON=sys.executable)
    if "Could not find a version" in done.stderr:
        pytest.skip("there is no package index to install from")
    assert done.returncode == 0, done.stderr
    command = [project.parent / "runner" / "gradfix" / "bin" / "gradfix", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.startswith("gradfix ")


def test_the_page_tells_every_input_and_output() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    inputs = re.findall(r"^\| `([\w-]+)` \| ?`?([^|`]*)`? ?\| ", page.split("| output |")[0], re.MULTILINE)
    assert dict(inputs) == {name: one["default"] for name, one in ACTION["inputs"].items()}
    told = page.split("| output | |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)`", told, re.MULTILINE) == list(ACTION["outputs"])


def test_the_page_names_every_hook() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| `([\w-]+)` \| `([^`]+)`", page.split("| hook |")[1], re.MULTILINE)
    assert rows[: len(hooks)] == [(hook["id"], hook["entry"]) for hook in hooks]
