"""The hooks for pre-commit, run by pre-commit itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fakes import ROOT, git

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
WORKSHOP = ROOT / "examples" / "workshop"
FAULTY = (WORKSHOP / "glyph_forge.py").read_text(encoding="utf-8")
RIGHT = (WORKSHOP / "tightrope.py").read_text(encoding="utf-8")


def pre_commit(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PRE_COMMIT_HOME": str(project.parent / "pre-commit"),
        "GIT_CONFIG_GLOBAL": "",
    }
    # A hook finds the command that was installed beside this interpreter.
    environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), environment["PATH"]])
    command = [sys.executable, "-m", "pre_commit", *arguments, "--color", "never"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=900)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a mistake in a file that is to be committed."""
    folder = tmp_path / "project"
    folder.mkdir()
    git("init", "--quiet", cwd=folder)
    (folder / "train.py").write_text(FAULTY)
    (folder / "notes.txt").write_text("loss.backward()\n")
    git("add", ".", cwd=folder)
    return folder


@pytest.fixture
def installed(project: Path) -> Path:
    """The same with the hooks of the manifest, by the command that is installed already."""
    hooks = [{**hook, "language": "system"} for hook in yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))]
    content = {"repos": [{"repo": "local", "hooks": hooks}]}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(content))
    git("add", ".", cwd=project)
    return project


def test_the_manifest_is_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_a_mistake_keeps_a_commit_back(installed: Path) -> None:
    done = pre_commit(installed, "run", "gradfix")
    assert done.returncode == 1
    assert "- exit code: 1\n" in done.stdout
    assert "train.py:" in done.stdout
    assert "undetached-fake: error:" in done.stdout
    assert git("status", "--porcelain", "--", "train.py", cwd=installed) == b"A  train.py\n"


def test_a_mistake_in_a_notebook_does_so_too(installed: Path) -> None:
    (installed / "train.py").write_text(RIGHT)
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": FAULTY.splitlines(True)}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (installed / "train.ipynb").write_text(json.dumps(notebook))
    git("add", ".", cwd=installed)
    done = pre_commit(installed, "run", "gradfix")
    assert done.returncode == 1
    assert "train.ipynb:cell 1:" in done.stdout


def test_what_is_right_passes(installed: Path) -> None:
    (installed / "train.py").write_text(RIGHT)
    git("add", ".", cwd=installed)
    done = pre_commit(installed, "run", "gradfix")
    assert (done.returncode, done.stdout.endswith("Passed\n")) == (0, True)


def test_what_the_configuration_excludes_is_left_out_though_it_is_named(installed: Path) -> None:
    (installed / "pyproject.toml").write_text("[tool.gradfix]\nexclude = ['train.py']\n")
    done = pre_commit(installed, "run")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("Passed") == 2


def test_without_a_python_file_nothing_is_started(installed: Path) -> None:
    git("rm", "--quiet", "--cached", "train.py", cwd=installed)
    done = pre_commit(installed, "run")
    assert done.stdout.count("Skipped") == 2


def test_the_other_hook_writes_what_is_proved(installed: Path) -> None:
    done = pre_commit(installed, "run", "gradfix-fix")
    assert done.returncode == 1
    assert "- files were modified by this hook\n" in done.stdout
    assert "proved" in done.stdout
    # The evidence is there, and is no part of the commit.
    assert [*(installed / "gradfix-evidence").glob("*.json")]
    assert git("status", "--porcelain", cwd=installed).splitlines() == [
        b"A  .pre-commit-config.yaml",
        b"A  notes.txt",
        b"AM train.py",
    ]
    git("add", ".", cwd=installed)
    assert pre_commit(installed, "run").returncode == 0


@pytest.mark.long
def test_pre_commit_installs_it_from_a_commit_of_this_repository(project: Path, tmp_path: Path) -> None:
    """As its user has it: an environment is made, with what gradfix depends on from the package index."""
    copy = tmp_path / "gradfix"
    tracked = (
        git("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).decode().split("\0")
    )
    for name in filter(None, tracked):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    git("init", "--quiet", cwd=copy)
    git("add", "--all", cwd=copy)
    git("commit", "--quiet", "--message", "a commit", cwd=copy)
    done = pre_commit(project, "try-repo", f"file://{copy}", "gradfix", "--all-files")
    if "CalledProcessError" in done.stdout:
        pytest.skip(f"pre-commit cannot make its environment here: {done.stdout[-400:]}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "undetached-fake: error:" in done.stdout
