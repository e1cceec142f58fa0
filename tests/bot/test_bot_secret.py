"""The token: it is where it is needed, and nowhere else."""

from __future__ import annotations

import base64
import logging
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forge_server import TOKEN, Fault
from world import World

from gradfix.bot.errors import BotError, UsageError
from gradfix.bot.git import Git
from gradfix.bot.http import Http, Patience, origin_of
from gradfix.bot.secret import Token, find_token, in_the_way, redacted

FORMS = [
    TOKEN,
    *(base64.b64encode(f"{user}:{TOKEN}".encode()).decode() for user in ("x-access-token", "oauth2")),
]
TALKING = ("fetch", "push", "ls-remote")

SPY = """\
#!{python}
import json, os, sys
with open({log!r}, "a") as stream:
    stream.write(json.dumps([sys.argv[1:], dict(os.environ)]) + "\\n")
os.execv({git!r}, ["git", *sys.argv[1:]])
"""


@pytest.fixture
def spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A git that writes down with what it is called; gives the file."""
    git = shutil.which("git")
    assert git is not None
    log = tmp_path / "calls.jsonl"
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(SPY.format(python=sys.executable, log=str(log), git=git))
    (folder / "git").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return log


def test_the_token_is_no_argument_and_only_three_commands_see_it(
    lab: World, spy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    monkeypatch.setenv("GRADFIX_TOKEN", TOKEN)
    monkeypatch.setenv("GIT_TRACE_CURL", "1")
    plan = lab.plan(select=("undetached-fake",))
    spy.unlink()
    lab.forge.fault = lambda number, request: Fault() if number == 1 else None
    assert lab.exit_code(plan) == 0
    # The server's own git, which is none of ours, is told apart by its environment.
    calls = [json.loads(line) for line in spy.read_text().splitlines()]
    ours = [(arguments, environment) for arguments, environment in calls if "GIT_CONFIG_COUNT" in environment]
    assert len(ours) > 8
    seen = set()
    for arguments, environment in ours:
        told = json.dumps(environment)
        assert not any(form in " ".join(arguments) for form in FORMS)
        assert "GRADFIX_TOKEN" not in environment and "GIT_TRACE_CURL" not in environment
        command = next(word for word in arguments if not word.startswith("-"))
        if any(form in told for form in FORMS):
            seen.add(command)
    assert seen <= set(TALKING)
    assert {"fetch", "push"} <= seen


def test_the_token_is_in_no_file_no_log_and_no_address(
    lab: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    found: list[str] = []
    leave = Git.__exit__

    def search(self: Git, *arguments: object) -> None:
        for path in self.folder.rglob("*"):
            if path.is_file() and any(form.encode() in path.read_bytes() for form in FORMS):
                found.append(str(path))
        assert any(path.is_file() for path in self.folder.rglob("*"))
        leave(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "__exit__", search)
    lab.publish(lab.plan(select=("undetached-fake",)))
    out, err = capfd.readouterr()
    logged = "\n".join(str(vars(record)) for record in caplog.records)
    for form in FORMS:
        assert form not in out + err + logged
        assert not any(form in request.path for request in lab.forge.requests)
    assert found == []


@pytest.mark.parametrize("status", [None, 400, 401, 403, 404, 409, 418, 422, 500])
@pytest.mark.parametrize("place", ["api", "git"])
def test_no_failure_tells_the_token(lab: World, status: int | None, place: str) -> None:
    """Not even if the server says it back."""
    said = f"you sent {TOKEN} and {FORMS[1]}"
    lab.seconds = 5.0
    lab.forge.fault = lambda number, request: (
        Fault(status, message=said) if request.is_git == (place == "git") else None
    )
    lab.exit_code(lab.plan(select=("undetached-fake",)))
    assert lab.log
    for text in lab.log:
        assert not any(form in text for form in FORMS), text


def test_a_token_does_not_show_itself() -> None:
    token = Token("abc123")
    assert "abc123" not in f"{token} {token!r} {[token]} {token.__class__}"
    assert redacted("Bearer abc123") == "Bearer ***"
    assert redacted(f"Basic {base64.b64encode(b'oauth2:abc123').decode()}") == "Basic ***"
    assert not hasattr(token, "__dict__")


@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "wört", "\x00"])
def test_what_can_be_no_header_is_no_token(value: str) -> None:
    with pytest.raises(UsageError):
        Token(value)


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    file.chmod(0o600)
    assert find_token({"GRADFIX_TOKEN": "from-environment"}).reveal() == "from-environment"
    assert find_token({"GRADFIX_TOKEN_FILE": str(file)}).reveal() == "from-file"
    assert find_token({"GRADFIX_TOKEN": "x"}, str(file)).reveal() == "from-file"
    for environment in ({}, {"GRADFIX_TOKEN": " "}, {"GRADFIX_TOKEN_FILE": str(tmp_path / "none")}):
        with pytest.raises(UsageError):
            find_token(environment)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666, 0o444])
def test_a_token_file_that_others_can_get_at_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    os.chown(file, os.geteuid(), 4242) if os.geteuid() == 0 else None
    file.chmod(mode)
    with pytest.raises(
        UsageError, match=rf"token can be read or changed by others \(mode {mode:o}\): chmod 600"
    ):
        find_token({}, str(file))
    link = tmp_path / "link"
    link.symlink_to(file)
    with pytest.raises(UsageError, match="by others"):
        find_token({"GRADFIX_TOKEN_FILE": str(link)})
    file.chmod(0o400)
    assert find_token({}, str(link)).reveal() == "from-file"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_token_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    file.chmod(0o600)
    os.chown(file, 4242, 4242)
    with pytest.raises(UsageError, match="belongs to somebody else"):
        find_token({}, str(file))
    # As systemd hands out credentials: root's, and readable by a list of its own, which shows as the group's.
    os.chown(file, 0, 0)
    file.chmod(0o440)
    assert find_token({}, str(file)).reveal() == "from-file"


def test_plan_sees_every_variable_that_may_hold_a_token() -> None:
    assert in_the_way({"PATH": "/bin"}) == []
    assert in_the_way({"GH_TOKEN": "x", "GRADFIX_TOKEN": "y", "GITLAB_TOKEN": ""}) == [
        "GRADFIX_TOKEN",
        "GH_TOKEN",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "http://forge.example/api/v1",
        "https://user:pw@forge.example/",
        "ftp://forge.example",
        "forge.example",
        "https://",
    ],
)
def test_the_token_is_sent_nowhere_else(url: str) -> None:
    with pytest.raises(UsageError):
        origin_of(url)


def test_a_page_elsewhere_is_not_fetched(lab: World) -> None:
    link = (("Link", '<http://127.0.0.1:1/next>; rel="next"'),)
    lab.forge.fault = lambda number, request: Fault(200, link) if "/pulls" in request.path else None
    with lab.connected() as (served, _, _), pytest.raises(BotError):
        served.pull_requests()


def test_a_redirect_is_not_followed(lab: World) -> None:
    away = (("Location", "http://127.0.0.1:1/elsewhere"),)
    lab.forge.fault = lambda number, request: Fault(301, away)
    token = Token(TOKEN)
    with Http(lab.forge.api_url("github"), token, {}, Patience(5.0)) as http, pytest.raises(UsageError):
        http.get("/repos/lab/nets")
    assert len(lab.forge.requests) == 1
