"""Nothing that came with the code is started, and nobody's modules take the place of gradfix's own.

A hostile program leaves its canary. The tests look for that, from outside, after the commands of a user.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import ROOT
from typer.testing import CliRunner

from gradfix import runtime
from gradfix.bot import git as bot_git
from gradfix.cli.commands import app
from gradfix.pipeline import certificate, driver, proving
from gradfix.pipeline.driver import Refusal, RequestedOptions
from gradfix.project import checkout, trust
from gradfix.project.source import Problem
from gradfix.runtime.sandbox import kernel, landlock
from gradfix.verify import interpreter, starting
from gradfix.verify.interpreter import Interpreter

SCRIPT = """\
import torch
from torch import nn

maker, critic = nn.Linear(3, 4), nn.Linear(4, 1)
opt_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
opt_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(3):
    made = maker(torch.randn(5, 3)).tanh()
    opt_critic.zero_grad()
    low = critic(made).sigmoid().mean()
    low.backward()
    opt_critic.step()
    opt_maker.zero_grad()
    high = -critic(made).sigmoid().mean()
    high.backward()
    opt_maker.step()
"""
OWNERS = not hasattr(os, "geteuid") or os.geteuid() != 0
AS_ROOT = "another user's folder is made by the superuser alone"


def git(folder: Path, *words: object) -> str:
    command = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b.example", *words]
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user who has allowed nothing and activated nothing."""
    (tmp_path / "home").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    interpreter._finds_torch.cache_clear()
    # Where it may not write, a program that is started leaves no canary.
    monkeypatch.setattr(starting, "_APART", [])
    yield tmp_path / "home"
    interpreter._finds_torch.cache_clear()


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a script in it."""
    made, folder = tmp_path / "made", tmp_path / "project"
    made.mkdir()
    (made / "train.py").write_text(SCRIPT)
    git(made, "init", "-q")
    git(made, "add", "-A")
    git(made, "commit", "-qm", "x")
    git(tmp_path, "clone", "-q", made, folder)
    monkeypatch.chdir(folder)
    return folder


def hostile(path: Path, canary: Path) -> Path:
    """A program that says that it has torch, and leaves its canary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch '{canary}'\nprintf True\n")
    path.chmod(0o755)
    return path


def environment(folder: Path, canary: Path) -> Path:
    """A virtual environment with such an interpreter."""
    hostile(folder / "bin/python", canary)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return folder


def real_environment(folder: Path, canary: Path) -> Path:
    """One whose interpreter is the system's, and whose site-packages has a hook for its start."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to(os.path.realpath(sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    packages = folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    packages.mkdir(parents=True)
    (packages / "hook.pth").write_text(f"import os; open({str(canary)!r}, 'w').close()\n")
    return folder


def invoke(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def passed_over(script: Path | str = "train.py") -> str:
    """What is said of the interpreters that are not started."""
    chosen = interpreter.choose_interpreter(Path(script))
    return chosen if isinstance(chosen, str) else "\n".join(chosen.passed_over)


# -- an environment beside the code ---------------------------------------------------------------

WAYS = "run `gradfix trust .venv`, activate it or give --python .venv/bin/python"
NOT_ALLOWED = f"not started: .venv, which you have not allowed: {WAYS}"


def came_with_a_clone(project: Path, canary: Path) -> None:
    real_environment(project / ".venv", canary)
    git(project, "add", "-f", ".venv")
    git(project, "commit", "-qm", "x")


def came_with_an_archive(project: Path, canary: Path) -> None:
    """Whose ``.gitignore`` names it, and of which the user has made a repository."""
    shutil.rmtree(project / ".git")
    real_environment(project / ".venv", canary)
    (project / ".gitignore").write_text(".venv\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "x")


def stayed_behind(project: Path, canary: Path) -> None:
    """A submodule that a later commit has removed: its files stay, and no index has them."""
    inner = project.parent / "inner"
    real_environment(inner, canary)
    git(inner, "init", "-q")
    git(inner, "add", "-f", "-A")
    git(inner, "commit", "-qm", "x")
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, ".venv")
    git(project, "commit", "-qm", "x")
    git(project, "rm", "-q", "--cached", ".venv", ".gitmodules")
    git(project, "commit", "-qm", "x")
    shutil.rmtree(project / ".git/modules")
    (project / ".venv/.git").unlink()


def lies_beside_no_repository(project: Path, canary: Path) -> None:
    shutil.rmtree(project / ".git")
    environment(project / ".venv", canary)


def is_linked_to(project: Path, canary: Path) -> None:
    environment(project / "tools/hidden", canary)
    (project / ".venv").symlink_to("tools/hidden")


def is_condas(project: Path, canary: Path) -> None:
    hostile(project / ".venv/bin/python", canary)
    (project / ".venv/conda-meta").mkdir()


@pytest.mark.parametrize(
    "make",
    [
        came_with_a_clone,
        came_with_an_archive,
        stayed_behind,
        lies_beside_no_repository,
        is_linked_to,
        is_condas,
    ],
)
def test_what_lies_beside_the_code_is_not_started(project: Path, canary: Path, make: Any) -> None:
    """Whatever git says of it: that cannot tell whose it is."""
    make(project, canary)
    assert passed_over() == NOT_ALLOWED
    assert not canary.exists()


@pytest.mark.parametrize("name", ["venv", "env"])
def test_nor_by_another_name(project: Path, canary: Path, name: str) -> None:
    environment(project / name, canary)
    assert f"not started: {name}, which you have not allowed" in passed_over()
    assert not canary.exists()


def test_a_folder_s_name_does_what_it_wants_to_no_terminal(
    project: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = project / "0\x1b[2J"
    environment(inner / ".venv", canary)
    (inner / "train.py").write_text(SCRIPT)
    assert "\x1b" not in passed_over(inner / "train.py") and "[2J" in passed_over(inner / "train.py")


@pytest.mark.usefixtures("servers")
def test_no_command_starts_it(project: Path, canary: Path) -> None:
    environment(project / ".venv", canary)
    said = NOT_ALLOWED
    code, output = invoke("apply", "--dry-run", "train.py")
    assert (code, output.count(said)) == (1, 1), output
    code, output = invoke("verify", "train.py", "--evidence", "evidence")
    assert (code, output.count(said)) == (1, 1), output
    (evidence,) = [json.loads(file.read_text())["evidence"] for file in Path("evidence").glob("*.json")]
    assert evidence["interpreter"] == trust.OWN and evidence["passed_over"] == [said]
    assert evidence["outcome"] == "proved"
    code, output = invoke("verify", "train.py")
    assert code == 1 and said in output and f"interpreter {trust.OWN}" in output
    code, output = invoke("bot", "plan")
    assert code == 0 and said in output
    command = [sys.executable, "-m", "gradfix", "run", "train.py"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False)
    assert not canary.exists()


# -- what a configuration names --------------------------------------------------------------------


def test_a_configuration_names_no_program_of_the_code(project: Path, canary: Path) -> None:
    hostile(project / "tools/python", canary)
    (project / "pyproject.toml").write_text("[tool.gradfix.verify]\npython = 'tools/python'\n")
    git(project, "add", "-f", "-A")
    git(project, "commit", "-qm", "x")
    for words in (["apply", "--dry-run", "train.py"], ["verify", "train.py"], ["bot", "plan"]):
        code, output = invoke(*words)
        assert code == 2 and "not started: tools/python, which you have not allowed" in output
        assert "run `gradfix trust tools/python` or give --python tools/python" in output
    assert not canary.exists()
    code, output = invoke("check", "train.py")
    assert code == 1, "nothing is run: " + output
    assert not isinstance(driver.prepare(["train.py"], RequestedOptions(python=sys.executable)), Refusal)


def test_a_link_to_gradfix_s_own_interpreter_is_another_one(project: Path, canary: Path) -> None:
    """Python goes by where the link lies: by the settings there, and by what they make it load."""
    real_environment(project / "env-of-mine", canary)
    (project / "env-of-mine/bin").rename(project / "env-of-mine/tools")
    (project / "env-of-mine/pyvenv.cfg").rename(project / "env-of-mine/tools/pyvenv.cfg")
    named = "env-of-mine/tools/python"
    (project / "pyproject.toml").write_text(f"[tool.gradfix.verify]\npython = {named!r}\n")
    found = driver.prepare(["train.py"], RequestedOptions())
    assert isinstance(found, Refusal) and f"not started: {named}, which you have" in found.message
    assert not canary.exists()


def test_an_active_environment_is_its_own_interpreter(
    project: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what else lies in its folder, which may be that of the project."""
    environment(project, canary)
    hostile(project / "tools/python", canary)
    monkeypatch.setenv("VIRTUAL_ENV", str(project))
    (project / "pyproject.toml").write_text("[tool.gradfix.verify]\npython = 'tools/python'\n")
    found = driver.prepare(["train.py"], RequestedOptions())
    assert isinstance(found, Refusal) and "not started: tools/python, which you have" in found.message


@pytest.mark.parametrize("name", ["rm", "tools/run", "/bin/sh", "git"])
def test_a_configuration_names_interpreters_only(project: Path, canary: Path, name: str) -> None:
    hostile(project / "tools/run", canary)
    (project / "pyproject.toml").write_text(f"[tool.gradfix.verify]\npython = {name!r}\n")
    found = driver.prepare(["train.py"], RequestedOptions())
    assert isinstance(found, Refusal) and "is not called what an interpreter is" in found.message
    assert not canary.exists()


def test_the_users_own_interpreters_can_be_named(
    project: Path, canary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = hostile(tmp_path / "bin/python3.99", canary)
    monkeypatch.setenv("PATH", f"{own.parent}{os.pathsep}{os.environ['PATH']}")
    for name in ("python3.99", str(own)):
        (project / "pyproject.toml").write_text(f"[tool.gradfix.verify]\npython = {name!r}\n")
        found = driver.prepare(["train.py"], RequestedOptions())
        assert not isinstance(found, Refusal) and found.interpreter is not None
        assert found.interpreter.executable == str(own)
    environment(project / ".venv", canary)
    trust.allow(".venv")
    (project / "pyproject.toml").write_text("[tool.gradfix.verify]\npython = '.venv/bin/python'\n")
    found = driver.prepare(["train.py"], RequestedOptions())
    assert not isinstance(found, Refusal) and found.interpreter is not None
    assert found.interpreter.chosen == f".venv (tool.gradfix.verify.python; {trust.ALLOWED})"


def test_programs_of_the_current_folder_are_not_found(
    project: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile(project / "git", canary)
    hostile(project / "python3.99", canary)
    monkeypatch.setenv("PATH", f":.{os.pathsep}{os.environ['PATH']}")
    environment(project / ".venv", canary)
    trust.allow(".venv")
    assert trust.verdict(".venv/bin/python").allowed
    (project / "pyproject.toml").write_text("[tool.gradfix.verify]\npython = 'python3.99'\n")
    assert isinstance(driver.prepare(["train.py"], RequestedOptions()), Refusal)
    assert not canary.exists()


# -- whose it is -----------------------------------------------------------------------------------


@pytest.mark.skipif(OWNERS, reason=AS_ROOT)
@pytest.mark.parametrize("other", [".", ".venv", ".venv/bin", ".venv/bin/python", ".venv/pyvenv.cfg"])
def test_what_belongs_to_another_user_cannot_be_allowed(project: Path, canary: Path, other: str) -> None:
    environment(project / ".venv", canary)
    os.chown(project / other, 12345, 12345)
    said = f"is not yours alone: {(project / other).resolve()} belongs to user 12345"
    assert passed_over() == (
        f"not started: .venv, which {said}: activate it or give --python .venv/bin/python"
    )
    assert invoke("trust", ".venv") == (2, f"error: .venv: {said}\n")
    assert not canary.exists()


@pytest.mark.skipif(OWNERS, reason=AS_ROOT)
def test_a_folder_above_that_belongs_to_another_user(
    tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in /tmp: somebody has put an environment, or a configuration, above where people work."""
    above, mine = tmp_path / "above", tmp_path / "above/mine"
    environment(above / ".venv", canary)
    mine.mkdir()
    (mine / "train.py").write_text(SCRIPT)
    (above / ".git").mkdir()
    (above / "pyproject.toml").write_text("[tool.gradfix.verify]\npython = '.venv/bin/python'\n")
    for one in (above, *above.rglob("*")):
        if mine not in (one, *one.parents):
            os.chown(one, 12345, 12345, follow_symlinks=False)
    monkeypatch.chdir(mine)
    assert "not started: ../.venv, " in passed_over()
    found = driver.prepare(["train.py"], RequestedOptions())
    assert isinstance(found, Refusal) and "not started: ../.venv, " in found.message
    assert not canary.exists()


@pytest.mark.parametrize("other", [".", ".venv", ".venv/bin", ".venv/pyvenv.cfg"])
def test_what_others_can_write_to_is_started_no_more(project: Path, canary: Path, other: str) -> None:
    environment(project / ".venv", canary)
    trust.allow(".venv")
    (project / other).chmod(0o777)
    assert f"others may write to {(project / other).resolve()}" in passed_over()
    assert "gradfix trust" not in passed_over()
    assert not canary.exists()


# -- what the user has allowed ---------------------------------------------------------------------


def test_the_active_environment_is_started(
    project: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(project / ".venv", canary)
    is_condas(project / "other", canary)
    for name, folder in (("VIRTUAL_ENV", ".venv"), ("CONDA_PREFIX", "other/.venv")):
        with monkeypatch.context() as patched:
            patched.setenv(name, str(project / folder))
            chosen = interpreter.choose_interpreter(Path("train.py"))
            found = Interpreter(str(project / folder / "bin/python"), chosen.chosen)  # type: ignore[union-attr]
            assert chosen == found and trust.ACTIVE in found.chosen
            assert interpreter.usual_interpreter() == Interpreter(found.executable, trust.ACTIVE)
            patched.setenv(name, folder)
            assert not canary.unlink() and NOT_ALLOWED in passed_over()
            assert not canary.exists()


def test_what_was_allowed_once_is_started(project: Path, canary: Path, home: Path) -> None:
    environment(project / ".venv", canary)
    assert invoke("trust", ".venv") == (0, f"trusted: {project.resolve()}/.venv\n")
    chosen = interpreter.choose_interpreter(Path("train.py"))
    assert chosen == Interpreter(str(project / ".venv/bin/python"), f".venv ({trust.ALLOWED})")
    kept = home / ".config/gradfix/trusted.json"
    assert kept.stat().st_mode & 0o77 == 0 and kept.parent.stat().st_mode & 0o77 == 0
    assert invoke("trust", "--list") == (0, f"{project.resolve()}/.venv\n")
    canary.unlink()
    assert invoke("trust", "--remove", ".venv")[0] == 0
    interpreter._finds_torch.cache_clear()
    assert passed_over() == NOT_ALLOWED
    assert not canary.exists()


def test_a_user_at_a_terminal_is_asked_once(
    project: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(project / ".venv", canary)
    answers, questions = ["no", "yes"], []

    def ask(question: str) -> bool:
        questions.append(question)
        return answers.pop(0) == "yes"

    with trust.asking(ask):
        assert passed_over() == NOT_ALLOWED and not canary.exists()
        (question,) = questions
        assert str(project / ".venv/bin/python") in question
        for _ in range(2):
            chosen = interpreter.choose_interpreter(Path("train.py"))
            assert isinstance(chosen, Interpreter) and chosen.chosen == f".venv ({trust.ALLOWED})"
    assert not answers and len(questions) == 2
    # Nobody is asked who has activated another one, or about what only others could answer for.
    trust.forget(".venv")
    environment(project / "mine", canary)
    with trust.asking(ask):
        monkeypatch.setenv("VIRTUAL_ENV", str(project / "mine"))
        assert passed_over() == ""
        monkeypatch.delenv("VIRTUAL_ENV")
        (project / ".venv").chmod(0o777)
        assert "others may write" in passed_over()


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("terminal", [True, False])
def test_a_command_asks_at_a_terminal_before_it_begins(
    project: Path, canary: Path, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(project / ".venv", canary)
    monkeypatch.setattr("gradfix.cli.preparing.can_answer", lambda: terminal)
    done = CliRunner().invoke(app, ["verify", "train.py"], input="n\n")
    question = (
        f"Start {project / '.venv/bin/python'}? It may have come with the code, and runs what is in it."
    )
    assert done.output.count(question) == terminal, done.output
    assert NOT_ALLOWED in done.output and "1 proved" in done.output
    assert not canary.exists()


@pytest.mark.parametrize("change", ["replaced", "settings", "interpreter", "pulled", "link"])
def test_what_has_changed_since_is_asked_about_again(project: Path, canary: Path, change: str) -> None:
    place = project / ".venv"
    real = environment(project / "place", canary)
    place.symlink_to(real)
    git(project, "add", "-f", "place")
    trust.allow(".venv")
    assert trust.verdict(".venv/bin/python").why == trust.ALLOWED
    if change == "replaced":
        real.rename(project / "old")
        environment(real, canary)
    elif change == "settings":
        (real / "pyvenv.cfg").write_text("home = /elsewhere\n")
    elif change == "interpreter":
        (real / "bin/python").unlink()
        (real / "bin/python").symlink_to(hostile(project / "other", canary))
    elif change == "pulled":
        (real / "lib").mkdir()
        (real / "lib/sitecustomize.py").touch()
        git(project, "add", "-f", "place")
    else:
        environment(project / "elsewhere", canary)
        place.unlink()
        place.symlink_to("elsewhere")
    assert f"which is not what it was when you allowed it: {WAYS}" in passed_over()
    assert "is not what it was" in invoke("trust", "--list")[1]
    assert not canary.exists()
    trust.allow(".venv")
    assert trust.verdict(".venv/bin/python").allowed


def test_the_list_of_what_is_allowed_is_the_users_own(project: Path, canary: Path, home: Path) -> None:
    environment(project / ".venv", canary)
    trust.allow(".venv")
    kept = home / ".config/gradfix/trusted.json"
    kept.chmod(0o666)
    assert "others may write to" in passed_over()
    kept.chmod(0o600)
    kept.write_text("[]")
    assert "is no list of what is trusted" in passed_over()
    assert not canary.exists()
    code, output = invoke("trust", ".venv")
    assert code == 2 and "remove it to start over" in output


def test_what_cannot_be_trusted_is_told(project: Path) -> None:
    code, output = invoke("trust", "train.py")
    told = "is neither an environment nor an interpreter nor a folder of data"
    assert (code, output) == (2, f"error: train.py: {told}\n")
    code, output = invoke("trust", "--remove", "train.py")
    assert (code, output) == (2, "error: train.py: is not among what you have allowed\n")
    assert invoke("trust")[0] == invoke("trust", "--list", "x")[0] == 2


# -- data outside the project ----------------------------------------------------------------------


def reads(project: Path) -> tuple[Path, ...]:
    """What runs may read besides the project."""
    found = driver.prepare(["train.py"], RequestedOptions())
    assert not isinstance(found, Refusal)
    return proving.command_for("train.py", found).readable


def test_a_configuration_alone_opens_no_folder_outside(project: Path, tmp_path: Path) -> None:
    data = tmp_path / "another"
    (data / ".git").mkdir(parents=True)
    (data / ".git/config").write_text("hunter2")
    (project / "inner").mkdir()
    (project / "link").symlink_to(data)
    (project / "pyproject.toml").write_text(
        "[tool.gradfix.verify]\nreadable = ['../another', 'inner', 'link', '../nothing']\n"
    )
    assert reads(project) == (project / "inner",)
    told = invoke("verify", "train.py")[1]
    assert f"runs do not get to read {data}, which you have not allowed: run `gradfix trust {data}`" in told
    assert invoke("trust", data) == (0, f"trusted: {data}\n")
    assert reads(project) == (data, project / "inner")
    assert f"runs may read {data} (readable in pyproject.toml)" in invoke("verify", "train.py")[1]
    # Another folder in its place is another one.
    data.rename(tmp_path / "old")
    data.mkdir()
    assert reads(project) == (project / "inner",)


def test_a_folder_that_holds_more_than_data_cannot_be_allowed(project: Path, home: Path) -> None:
    (home / ".ssh").mkdir()
    for folder in (home, home / ".ssh", "/", "/etc"):
        code, output = invoke("trust", folder)
        assert code == 2 and "is no folder that runs read" in output


# -- modules in the wrong place --------------------------------------------------------------------

PLANTED = (
    "argparse ast base64 bdb calendar catalog certificate cli click codemod copy csv ctypes dataclasses "
    "dis email gradfix_codemods graphlib hashlib heapq http inspect json libcst linecache logging numpy "
    "optparse pathlib pathspec pickle pipeline platform project random resource rich selectors shellingham "
    "shlex shutil signal site sitecustomize socket source string struct subprocess tempfile textwrap "
    "threading tokenize tomllib torch traceback tree typer typing typing_extensions unidiff urllib "
    "usercustomize uuid weakref zipfile zlib importlib contextlib types warnings"
).split()
OF_PYTHON = ("importlib", "contextlib", "types", "warnings", "site", "sitecustomize", "usercustomize")
"""What Python imports by itself, before it comes to any module that ``-m`` names."""


def plant(folder: Path, canary: Path, *without: str) -> None:
    """Modules that leave their canary, and a package that offers one as a codemod."""
    folder.mkdir(exist_ok=True)
    for name in {*PLANTED} - {*without}:
        (folder / f"{name}.py").write_text(f"open({str(canary)!r}, 'a').write({name + ' '!r})\n")
    (folder / "evil-1.dist-info").mkdir()
    (folder / "evil-1.dist-info/METADATA").write_text("Name: evil\nVersion: 1\n")
    (folder / "evil-1.dist-info/entry_points.txt").write_text("[gradfix.codemods]\nevil = gradfix_codemods\n")


def test_gradfix_imports_nothing_from_the_current_folder(project: Path, canary: Path) -> None:
    plant(project, canary, *OF_PYTHON)
    variables = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.curdir}{os.pathsep}"}
    for words in (["check", "train.py"], ["apply", "--dry-run", "train.py"], ["list"]):
        command = [sys.executable, "-m", "gradfix", *words]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
        assert not canary.exists(), canary.read_text()
    assert "undetached-fake" in done.stdout


def test_pythonpath_is_for_scripts(project: Path, canary: Path, tmp_path: Path) -> None:
    plant(project, canary, *OF_PYTHON)
    (project / "gradfix.py").write_text(f"open({str(canary)!r}, 'w')\n")
    variables = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{project}"}
    command = [sys.executable, "-m", "gradfix", "check", str(project / "train.py")]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "undetached-fake" in done.stdout, done.stderr
    assert not canary.exists(), canary.read_text()


def test_asking_an_interpreter_imports_nothing_that_lies_about(
    project: Path, canary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the temporary folder, the current one, the project; by PYTHONPATH or not."""
    shared = tmp_path / "shared"
    for folder in (shared, project):
        plant(folder, canary)
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setenv("PYTHONPATH", f"{project}{os.pathsep}.{os.pathsep}")
    code, output = invoke("verify", "train.py", "--python", sys.executable)
    assert code == 1 and "1 proved" in output, output
    assert not canary.exists(), canary.read_text()


def test_an_interpreter_is_asked_in_a_folder_and_an_environment_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRADFIX_TOKEN", "secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    program = """
        import json, os, sys
        print(json.dumps([os.getcwd(), os.listdir(), os.stat(".").st_mode & 0o777, dict(os.environ)]))
    """
    answer = starting.ask(sys.executable, textwrap.dedent(program), starting.environment())
    folder, content, mode, variables = json.loads(answer)
    assert (content, mode) == ([], 0o700) and not os.path.exists(folder)
    assert not {"GRADFIX_TOKEN", "LD_PRELOAD", "PYTHONPATH"} & variables.keys()


def test_an_interpreter_that_is_asked_writes_nothing(project: Path, canary: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("Landlock is Linux's")
    program = f"open({str(canary)!r}, 'w')"
    asking = [sys.executable, "-I", runtime.MAIN, "sandbox", "--ask", str(project)]
    command = [*asking, sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        landlock.landlock_abi()
    except kernel.SandboxError as error:
        pytest.skip(str(error))
    assert "PermissionError" in done.stderr
    assert not canary.exists()


def test_what_is_on_the_users_own_pythonpath_is_found(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cluster").mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "cluster"), str(project), "", "lib"]))
    assert starting.environment([project])["PYTHONPATH"] == str(tmp_path / "cluster")
    assert starting.folders_in("PYTHONPATH", "/w") == [
        str(tmp_path / "cluster"),
        str(project),
        "/w",
        "/w/lib",
    ]


# -- what git is asked -----------------------------------------------------------------------------


@pytest.fixture
def booby_trapped(project: Path, canary: Path) -> Path:
    """A checkout whose configuration names a program wherever git takes one."""
    trap = hostile(project.parent / "trap", canary)
    (project / ".gitattributes").write_text("*.py filter=trap diff=trap merge=trap\n*.toml filter=trap\n")
    (project / "pyproject.toml").write_text("[tool.gradfix.bot]\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "x")
    hooks = project.parent / "hooks"
    for name in ("post-index-change", "post-checkout", "reference-transaction", "pre-auto-gc"):
        hostile(hooks / name, canary)
        shutil.copy(hooks / name, project / ".git/hooks" / name)
    settings = {
        "core.fsmonitor": trap,
        "core.hooksPath": hooks,
        "core.sshCommand": trap,
        "core.pager": trap,
        "core.editor": trap,
        "core.askPass": trap,
        "core.alternateRefsCommand": trap,
        "credential.helper": f"!{trap}",
        "diff.external": trap,
        "diff.trap.textconv": trap,
        "diff.trap.command": trap,
        "filter.trap.clean": trap,
        "filter.trap.smudge": trap,
        "filter.trap.process": trap,
        "filter.trap.required": "true",
        "alias.status": f"!{trap}",
        "alias.ls-tree": f"!{trap}",
        "alias.ls-files": f"!{trap}",
        "alias.cat-file": f"!{trap}",
        "alias.rev-parse": f"!{trap}",
        "pager.ls-tree": trap,
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{trap}",
        "remote.origin.uploadpack": trap,
        "protocol.ext.allow": "always",
        "core.worktree": project.parent / "elsewhere",
        "core.repositoryFormatVersion": "1",
    }
    more = project.parent / "more.config"
    more.write_text(f"[core]\n\tfsmonitor = {trap}\n")
    with (project / ".git/config").open("a") as config:
        config.write(f"[include]\n\tpath = {more}\n")
    for name, value in settings.items():
        command = ["git", "config", "--file", project / ".git/config", name, value]
        subprocess.run(list(map(str, command)), check=True, env={**os.environ, "GIT_DIR": os.devnull})
    # The next look at the index would read the file through the filter.
    os.utime(project / "train.py", (1, 1))
    return project


def test_git_itself_would_fall_for_it(booby_trapped: Path, canary: Path) -> None:
    command = ["git", "-C", str(booby_trapped), "--work-tree", str(booby_trapped), "status"]
    subprocess.run(command, check=False, capture_output=True)
    assert canary.exists()


def test_a_plan_runs_nothing_of_the_checkout(booby_trapped: Path, canary: Path) -> None:
    index = (booby_trapped / ".git/index").read_bytes()
    code, output = invoke("bot", "plan", "--no-verify")
    assert code == 0, output
    assert "train.py" in (booby_trapped / "plan.json").read_text()
    environment(booby_trapped / ".venv", canary)
    trust.allow(".venv")
    assert trust.verdict(".venv/bin/python").why == trust.ALLOWED
    assert not canary.exists()
    assert (booby_trapped / ".git/index").read_bytes() == index
    (booby_trapped / "train.py").write_text(SCRIPT + "\n")
    code, output = invoke("bot", "plan", "--no-verify")
    assert code == 2 and "train.py has changes that are not committed" in output
    assert not canary.exists()


def test_an_object_that_is_not_there_is_not_fetched(booby_trapped: Path, canary: Path) -> None:
    here = bot_git.checkout_of(str(booby_trapped))
    with pytest.raises(checkout.CheckoutError):
        here.ask("cat-file", "blob", "1" * 40)
    assert not canary.exists()


@pytest.mark.parametrize("kind", ["sha256", "worktree", "split"])
def test_all_kinds_of_checkouts_can_be_asked(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "kind"
    git(tmp_path, "init", "-q", f"--object-format={'sha256' if kind == 'sha256' else 'sha1'}", folder)
    (folder / "a.py").write_text("a")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    if kind == "worktree":
        git(folder, "worktree", "add", "-q", tmp_path / "other")
        folder = tmp_path / "other"
    if kind == "split":
        git(folder, "update-index", "--split-index")
    here = bot_git.checkout_of(str(folder))
    assert bot_git.head_of(here) == git(folder, "rev-parse", "HEAD").strip()
    assert list(bot_git.files_of(here, "HEAD")) == ["a.py"]
    assert bot_git.uncommitted(here) == []
    assert here.ask("ls-files") == b"a.py\n"


# -- certificates ----------------------------------------------------------------------------------

CURIOUS = """\
import torch
told = open("notes.txt").read()
if "hunter" in told:
    raise ValueError(told)
w = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
(w * 2).sum().backward()
opt.step()
"""


def certified(file: Path, filename: str, text: str) -> Path:
    """A certificate that somebody else has made, about a file that is elsewhere."""
    # A fix that has an effect.
    kept = text.replace("backward()", "backward(retain_graph=True)")
    before, after = ({"sha256": certificate._digest(one), "text": one} for one in (kept, text))
    claim = {"raises": None, "raises_line": None, "unchanged": "all", "feeds": [], "beyond": False}
    content = {"schema": 2, "filename": filename, "code": "x", "message": "x", "effect": "preserves"}
    content |= {"claim": claim | {"same_forwards": True}, "before": before, "after": after}
    file.write_text(json.dumps(content | {"outcome": "unverified"}))
    return file


@pytest.mark.usefixtures("servers")
def test_a_certificate_does_not_choose_what_its_script_reads(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/notes.txt").write_text("hunter2")
    (project / "notes.txt").write_text("hunter3")
    for name in (str(tmp_path / "elsewhere/a.py"), "../elsewhere/a.py", str(project / "a.py"), "a.py"):
        file = certified(tmp_path / "c.json", name, CURIOUS)
        code, output = invoke("verify", "--certificate", file, "--python", sys.executable)
        assert code == 0 and "hunter" not in output, output
        assert "was not looked at" in output
    for name in ("../elsewhere/a.py", str(tmp_path / "elsewhere/a.py"), "/etc/x.py", "link/a.py"):
        (project / "link").unlink(missing_ok=True)
        (project / "link").symlink_to(tmp_path / "elsewhere")
        file = certified(tmp_path / "c.json", name, CURIOUS)
        code, output = invoke("verify", "--certificate", file, ".", "--python", sys.executable)
        assert (code, output) == (2, f"error: .: does not hold {name}; name the file that takes its place\n")
    # What lies in the folder that the user names may be read, and nothing above it.
    file = certified(tmp_path / "c.json", "a.py", CURIOUS)
    code, output = invoke("verify", "--certificate", file, ".", "--python", sys.executable)
    assert code == 2 and "ValueError (hunter3)" in output, output
    (project / "sub").mkdir()
    text = CURIOUS.replace('"notes.txt"', repr(str(project / "notes.txt")))
    file = certified(tmp_path / "c.json", "a.py", text)
    code, output = invoke("verify", "--certificate", file, "sub", "--python", sys.executable)
    assert "hunter" not in output
    assert isinstance(certificate.read(str(certified(tmp_path / "c.json", "a\0.py", CURIOUS))), Problem)
