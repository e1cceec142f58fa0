"""The command line of the bot: two phases, exit codes, and what is imported when."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from forge_server import TOKEN, Fault, ForgeServer
from typer.testing import CliRunner
from world import BRANCH, FIXED_GAN, GAN, REPOSITORY, World

from gradfix.cli.bot import app
from gradfix.core.errors import quoted

ROOT = Path(__file__).resolve().parents[2]
CI = ("GITHUB_", "GITLAB_", "CI_", "GITEA_", "GRADFIX_", "GH_", "FORGEJO_")


def outside_ci(**environment: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(CI)}
    return {**clean, "PYTHONPATH": str(ROOT), **environment}


def process(
    *arguments: object, cwd: Path, terminal: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """``gradfix bot`` as its user runs it, if asked for with a terminal for its standard error."""
    ours, theirs = pty.openpty() if terminal else (None, None)
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "bot", *map(str, arguments)],
        cwd=cwd,
        env=outside_ci(**environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if theirs is None else theirs,
        text=True,
        timeout=180,
    )
    if ours is not None and theirs is not None:
        os.close(theirs)
        done.stderr = os.read(ours, 1 << 16).decode()
        os.close(ours)
    assert "Traceback" not in done.stderr, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    return done


def bot(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, which takes a tenth of the time."""
    with contextlib.chdir(cwd), mock.patch.dict(os.environ, outside_ci(**environment), clear=True):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert TOKEN not in done.stdout + done.stderr
    return subprocess.CompletedProcess([], done.exit_code, done.stdout, done.stderr)


def checkout(forge: ForgeServer, folder: Path) -> Path:
    command = ["git", "clone", "-q", str(forge.root / f"{REPOSITORY}.git"), str(folder)]
    subprocess.run(command, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    return folder


@pytest.fixture
def clone(forge: ForgeServer, tmp_path: Path) -> Path:
    return checkout(forge, tmp_path / "clone")


def test_from_a_checkout_to_a_pull_request(lab: World, tmp_path: Path) -> None:
    """Nothing is made up here: both versions are run, and the evidence goes into the pull request."""
    lab.forge.commit(REPOSITORY, "main", {"rnn.py": None})
    clone = checkout(lab.forge, tmp_path / "clone")
    planned = process("plan", "--python", sys.executable, "-o", "../plan.json", cwd=clone, terminal=True)
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.splitlines()[1:] == ["  undetached-fake: models/gan.py (proved)"]
    assert planned.stderr.splitlines() == [
        "[1/1] models/gan.py: undetached-fake",
        "[1/1] models/gan.py: detach `painting`: proved",
    ]
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["changes"][0]["rewrites"][0]["outcome"] == "proved"
    target = ("--repo", REPOSITORY, "--api-url", lab.forge.api_url("github"))
    dry = bot("publish", "plan.json", *target, "--dry-run", cwd=tmp_path, GRADFIX_TOKEN=TOKEN)
    assert dry.returncode == 0, dry.stderr
    assert "would create" in dry.stdout and "**Proved:**" in dry.stdout
    assert "+    scorn = critic(painting.detach())" in dry.stdout
    lab.forge.is_public = True
    seen = bot("publish", "plan.json", *target, "--dry-run", cwd=tmp_path)
    assert (seen.returncode, seen.stdout) == (0, dry.stdout)
    assert "note: there is no token" in seen.stderr
    assert lab.writes() == []
    done = process("publish", "plan.json", *target, cwd=tmp_path, GRADFIX_TOKEN=TOKEN)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{BRANCH}: created http://")
    (pull,) = lab.forge.pulls
    assert "> `RuntimeError: Trying to backward through the graph a second time (or directly" in pull.body
    assert f"| before | raised {quoted('E1')} at line 17" in pull.body
    assert lab.forge.content(REPOSITORY, BRANCH, "models/gan.py") == FIXED_GAN
    again = bot("publish", "plan.json", *target, cwd=tmp_path, GRADFIX_TOKEN=TOKEN)
    assert again.stdout.startswith(f"{BRANCH}: unchanged")
    assert_checks_itself(pull.body, checkout(lab.forge, tmp_path / "again"), FIXED_GAN)
    status = bot("status", *target, cwd=tmp_path, GRADFIX_TOKEN=TOKEN)
    assert status.stdout.startswith(f"{BRANCH}: open: 1 rewrite ")


def assert_checks_itself(body: str, clone: Path, fixed: bytes) -> None:
    """The commands in a pull request, as they stand there, prove it once more and make its change."""
    (script,) = re.findall(r"^```sh\n(.*?)^```$", body, re.DOTALL | re.MULTILINE)
    tools = clone.parent / "tools"
    tools.mkdir()
    (tools / "gradfix").write_text(f'#!/bin/sh\nexec {sys.executable} -m gradfix "$@"\n')
    (tools / "gradfix").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=clone, env=outside_ci(PATH=path), capture_output=True, text=True
    )
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    assert (clone / "models" / "gan.py").read_bytes() == fixed


def test_plan_runs_the_user_s_command_within_the_repository(lab: World, tmp_path: Path) -> None:
    """What it saw is published: so it reads nothing else of the machine, whatever the configuration says."""
    lab.forge.commit(
        REPOSITORY,
        "main",
        {
            "models/gan.py": b"import sys\nassert sys.argv[1:] == ['--fast']\n" + GAN,
            "rnn.py": None,
            "pyproject.toml": b'[tool.gradfix.verify]\nreadable = ["/srv"]\nenv = ["DATA_ROOT"]\n',
        },
    )
    clone = checkout(lab.forge, tmp_path / "clone")
    plan = ("plan", "--python", sys.executable, "-o", "../plan.json", "models/gan.py")
    planned = process(*plan, "--", "--fast", cwd=clone)
    assert planned.returncode == 0, planned.stderr
    assert "readable and env of tool.gradfix.verify are not for the bot" in planned.stderr
    outcomes = [json.loads((tmp_path / "plan.json").read_text())["changes"][0]["rewrites"][0]["outcome"]]
    again = process(*plan, "--", "--slow", cwd=clone)
    assert again.returncode == 0, (again.stdout, again.stderr)
    outcomes += [json.loads((tmp_path / "plan.json").read_text())["changes"][0]["rewrites"][0]["outcome"]]
    assert outcomes == ["proved", "unverified"]


def test_plan_does_not_start_beside_a_token(clone: Path) -> None:
    done = bot("plan", cwd=clone, GH_TOKEN="x")
    assert done.returncode == 2
    assert "env -u GH_TOKEN gradfix bot plan" in done.stderr
    assert not (clone / "plan.json").exists()


def test_plan_is_about_a_commit(clone: Path, tmp_path: Path) -> None:
    (clone / "rnn.py").write_text("changed\n")
    done = bot("plan", "--no-verify", cwd=clone)
    assert (done.returncode, "not committed" in done.stderr) == (2, True)
    done = bot("plan", "--no-verify", cwd=tmp_path)
    assert (done.returncode, "is not in a git repository" in done.stderr) == (2, True)


def test_plan_leaves_out_what_is_not_committed(clone: Path) -> None:
    (clone / "fresh.py").write_bytes(GAN)
    (clone / "link.py").symlink_to("fresh.py")
    done = bot("plan", "--no-verify", cwd=clone)
    assert done.returncode == 0
    assert "fresh.py: left out: it is not a regular file of the commit" in done.stderr
    paths = {change["path"] for change in json.loads((clone / "plan.json").read_text())["changes"]}
    assert paths == {"models/gan.py", "rnn.py"}


def test_plan_works_below_the_root(clone: Path) -> None:
    done = bot("plan", "--no-verify", "gan.py", cwd=clone / "models")
    assert done.returncode == 0, done.stderr
    (change,) = json.loads((clone / "models" / "plan.json").read_text())["changes"]
    assert change["path"] == "models/gan.py"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repo", "nets"], "is not the name of a repository"),
        (["--repo", "-x/y"], "is not the name of a repository"),
        (["--repo", "a/../b"], "is not the name of a repository"),
        ([], "which repository"),
        (["--repo", "a/b", "--api-url", "http://forge.example/api/v4"], "has to be https"),
        (["--repo", "a/b", "--api-url", "https://forge.example/api"], "what kind of server"),
    ],
)
def test_wrong_calls_are_2(clone: Path, arguments: list[str], message: str) -> None:
    assert bot("plan", "--no-verify", cwd=clone).returncode == 0
    done = bot("publish", *arguments, cwd=clone, GRADFIX_TOKEN=TOKEN)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_without_a_token_or_a_plan_it_is_2(clone: Path) -> None:
    assert bot("publish", "--repo", "a/b", cwd=clone, GRADFIX_TOKEN=TOKEN).returncode == 2
    bot("plan", "--no-verify", cwd=clone)
    done = bot("publish", "--repo", "a/b", cwd=clone)
    assert (done.returncode, "there is no token" in done.stderr) == (2, True)


@pytest.mark.parametrize(("status", "code"), [(401, 3), (403, 3), (429, 4)])
def test_exit_codes(lab: World, clone: Path, status: int, code: int) -> None:
    bot("plan", "--no-verify", cwd=clone)
    far = (("Retry-After", "99999"),) if status == 429 else ()
    lab.forge.fault = lambda number, request: Fault(status, far)
    target = ("--repo", REPOSITORY, "--api-url", lab.forge.api_url("github"), "--base", "main")
    done = bot("publish", *target, cwd=clone, GRADFIX_TOKEN=TOKEN)
    assert done.returncode == code, done.stderr


def test_ci_says_where_it_is() -> None:
    from gradfix.bot.connect import place

    github = place({"GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": "https://api.github.com"}, None, None, None)
    assert (github.kind, github.git_url) == ("github", "https://github.com")
    server = place({"GITHUB_API_URL": "https://ghe.example/api/v3"}, None, None, "a/b")
    assert (server.kind, server.git_url) == ("github", "https://ghe.example")
    gitlab = place(
        {"CI_API_V4_URL": "https://gl.example/api/v4", "CI_PROJECT_PATH": "g/h/b"}, None, None, None
    )
    assert (gitlab.kind, gitlab.git_url, gitlab.repository) == ("gitlab", "https://gl.example", "g/h/b")
    gitea = place({"GITHUB_API_URL": "https://tea.example/sub/api/v1"}, None, None, "a/b")
    assert (gitea.kind, gitea.git_url) == ("gitea", "https://tea.example/sub")


def test_nothing_of_the_bot_is_loaded_without_it(clone: Path) -> None:
    code = (
        "import sys, gradfix.cli.commands; "
        "print([m for m in sys.modules if m.startswith(('gradfix.bot', 'httpx'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_plan_needs_no_http_client(clone: Path) -> None:
    start = "import sys; sys.modules['httpx2'] = None; from gradfix.__main__ import main; main()"

    def without(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", start, "bot", *arguments]
        variables = outside_ci(**environment)
        return subprocess.run(command, cwd=clone, env=variables, capture_output=True, text=True, check=False)

    assert without("plan", "--no-verify").returncode == 0
    done = without("status", "--repo", "a/b", GRADFIX_TOKEN=TOKEN)
    assert (done.returncode, "pip install 'httpx2" in done.stderr) == (2, True)
