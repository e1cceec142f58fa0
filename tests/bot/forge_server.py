"""A forge for tests: GitHub's, GitLab's and Gitea's interfaces, one store, refs of real git repositories.

Pull requests are in memory; branches and commits are those of bare repositories, which ``git http-backend``
serves. What a forge refuses, it refuses: an unknown token, a second pull request from the same branch, one
without commits, a push that the lease or a protection forbids. Every request is counted and can be made to
fail: before it is carried out or after, by an answer, by no answer, or by somebody else doing something.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BOT = "gradfix-bot"
TOKEN = "gft_" + "s3cr3t" * 5
Json = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What happens to a request instead of its answer."""

    status: int | None = None
    """Of the answer; ``None``: the connection is dropped."""
    headers: tuple[tuple[str, str], ...] = ()
    message: str = "an injected fault"
    after: bool = False
    """Whether the request is carried out first, and only its answer lost."""
    hang: float = 0.0
    """Seconds before that."""


@dataclass(frozen=True)
class Request:
    """A request as it came in."""

    method: str
    path: str
    """With the query."""
    headers: dict[str, str]

    @property
    def is_git(self) -> bool:
        return ".git/" in self.path

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Pull:
    """A pull request."""

    number: int
    repository: str
    home: str
    """The repository of its branch."""
    branch: str
    base: str
    title: str
    body: str
    author: str
    draft: bool = False
    state: str = "open"
    merged: bool = False
    sha: str = ""
    labels: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    line_comments: list[Json] = field(default_factory=list)
    edits: int = 0


class ForgeServer:
    """The server; used as a context manager."""

    def __init__(self, root: Path, *, page: int = 2) -> None:
        self.root = root
        self.page = page
        """Items on a page, at most: few, so that there are several."""
        self.pulls: list[Pull] = []
        self.labels: dict[str, int] = {}
        self.forks: dict[str, str] = {}
        self.requests: list[Request] = []
        self.fault: Callable[[int, Request], Fault | None] = lambda number, request: None
        """Asked for every request, which is counted from 0."""
        self.problems: list[str] = []
        self.allows_duplicates = False
        """Some forges do."""
        self.is_public = False
        """Whether anybody can read without a token, though not who they are nor, on GitLab, the notes."""
        self._lock = threading.RLock()

    def __enter__(self) -> ForgeServer:
        server = self

        class Handler(_Handler):
            forge = server

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                # Of what a request leaves unanswered, the test has to hear; a client that goes is none of it.
                if not isinstance(sys.exception(), ConnectionError):
                    server.problems.append(traceback.format_exc())

        self._http = Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_port
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def api_url(self, kind: str) -> str:
        return f"http://127.0.0.1:{self.port}/api/{ {'github': 'v3', 'gitlab': 'v4', 'gitea': 'v1'}[kind] }"

    # ------------------------------------------------------------------ git

    def git(self, repository: str, *arguments: str, stdin: bytes = b"") -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "person",
            "GIT_AUTHOR_EMAIL": "person@example.org",
            "GIT_COMMITTER_NAME": "person",
            "GIT_COMMITTER_EMAIL": "person@example.org",
            "GIT_AUTHOR_DATE": "1767225600 +0000",
            "GIT_COMMITTER_DATE": "1767225600 +0000",
        }
        command = ["git", f"--git-dir={self.root}/{repository}.git", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, env=environment, check=False)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def branches(self, repository: str) -> dict[str, str]:
        # Read as files: it is asked for at every turn, and a process for each takes longer than all the rest.
        directory = self.root / f"{repository}.git"
        packed = directory / "packed-refs"
        rows = packed.read_text().splitlines() if packed.exists() else []
        pairs = [row.split(" ", 1) for row in rows if " refs/heads/" in row]
        found = {ref.removeprefix("refs/heads/"): oid for oid, ref in pairs}
        heads = directory / "refs" / "heads"
        loose = [path for path in heads.rglob("*") if path.is_file() and path.suffix != ".lock"]
        return found | {str(path.relative_to(heads)): path.read_text().strip() for path in loose}

    def commit(
        self, repository: str, branch: str, files: dict[str, bytes | None], message: str = "work"
    ) -> str:
        """What a person pushes: ``files`` on top of ``branch`` (``None`` removes one)."""
        parent = self.branches(repository).get(branch)
        text = message.encode()
        # One process for all of it, where hash-object, update-index, write-tree and more would each be one.
        stream = [b"commit refs/heads/%s\n" % branch.encode()]
        stream.append(b"committer person <person@example.org> 1767225600 +0000\n")
        stream.append(b"data %d\n%s\n" % (len(text) + 1, text + b"\n"))
        stream += [b"from %s\n" % parent.encode()] if parent else []
        for path, data in files.items():
            if data is None:
                stream.append(b"D %s\n" % path.encode())
            else:
                stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data))
        self.git(repository, "fast-import", "--quiet", stdin=b"".join(stream))
        return self.branches(repository)[branch]

    def commit_entries(
        self, repository: str, branch: str, rows: list[str], message: str, parent: str | None
    ) -> str:
        """The same, from the rows of ``git update-index --index-info``."""
        index = f"{self.root}/{repository}.git/person-index"
        environment = {"PATH": os.environ["PATH"], "GIT_INDEX_FILE": index}
        directory = f"--git-dir={self.root}/{repository}.git"

        def run(*arguments: str, stdin: bytes = b"") -> str:
            command = ["git", directory, *arguments]
            done = subprocess.run(command, input=stdin, env=environment, capture_output=True, check=True)
            return done.stdout.decode().strip()

        if parent:
            run("read-tree", parent)
        data = b"".join(row.encode("utf-8", "surrogateescape") + b"\0" for row in rows)
        run("update-index", "-z", "--index-info", stdin=data)
        tree = run("write-tree")
        Path(index).unlink(missing_ok=True)
        parents = ["-p", parent] if parent else []
        commit = self.git(repository, "commit-tree", tree, *parents, "-m", message)
        self.git(repository, "update-ref", f"refs/heads/{branch}", commit)
        return commit

    def content(self, repository: str, ref: str, path: str) -> bytes:
        command = ["git", f"--git-dir={self.root}/{repository}.git", "cat-file", "blob", f"{ref}:{path}"]
        return subprocess.run(command, capture_output=True, check=True).stdout

    # ------------------------------------------------------------------ what people do

    def close(self, number: int) -> None:
        self.pull(number).state = "closed"

    def merge(self, number: int) -> None:
        """As "squash and merge" does."""
        pull = self.pull(number)
        sha = self.branches(pull.home)[pull.branch]
        tree = self.git(pull.repository, "rev-parse", f"{sha}^{{tree}}")
        parent = self.branches(pull.repository)[pull.base]
        commit = self.git(pull.repository, "commit-tree", tree, "-p", parent, "-m", "merged")
        self.git(pull.repository, "update-ref", f"refs/heads/{pull.base}", commit)
        pull.state, pull.merged, pull.sha = "closed", True, sha

    def pull(self, number: int) -> Pull:
        return next(pull for pull in self.pulls if pull.number == number)

    def open_pulls(self) -> list[Pull]:
        return [pull for pull in self.pulls if pull.state == "open"]

    def head_of(self, pull: Pull) -> str:
        if pull.state == "open":
            pull.sha = self.branches(pull.home).get(pull.branch, pull.sha)
            if pull.sha and pull.home != pull.repository:
                self.git(pull.repository, "fetch", "-q", f"{self.root}/{pull.home}.git", pull.sha)
            if pull.sha:
                for kind in ("pull", "merge-requests"):
                    ref = self.root / f"{pull.repository}.git" / "refs" / kind / str(pull.number) / "head"
                    ref.parent.mkdir(parents=True, exist_ok=True)
                    ref.write_text(f"{pull.sha}\n")
        return pull.sha

    def protect(self, repository: str, pattern: str) -> None:
        """Refuse every push to branches that match the shell ``pattern``."""
        hook = self.root / f"{repository}.git" / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f'#!/bin/sh\ncase "$1" in {pattern}) echo "protected branch" >&2; exit 1;; esac\n')
        hook.chmod(0o755)

    def fork_of(self, repository: str, owner: str) -> str:
        name = f"{owner}/{repository.split('/')[1]}"
        if name not in self.forks:
            target = self.root / f"{name}.git"
            source = self.root / f"{repository}.git"
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "clone", "-q", "--bare", str(source), str(target)], check=True)
            subprocess.run(["git", f"--git-dir={target}", "config", "http.receivepack", "true"], check=True)
            self.forks[name] = repository
        return name

    # ------------------------------------------------------------------ the API

    def answer(self, method: str, path: str, query: dict[str, str], content: Json) -> tuple[int, Any]:
        """What the API answers; a list is cut into pages by the caller."""
        version, rest = re.fullmatch(r"/api/(v\d)(/.*)", path).groups()  # type: ignore[union-attr]
        dialect = {"v3": _GitHub, "v4": _GitLab, "v1": _Gitea}[version](self)
        with self._lock:
            for pattern, verb, function in dialect.routes():
                match = re.fullmatch(pattern, rest)
                if match and verb == method:
                    found = function(*match.groups(), query=query, content=content)
                    return found if isinstance(found, tuple) else (200, found)
        return 404, {"message": "Not Found"}

    def exists(self, repository: str) -> bool:
        return (self.root / f"{repository}.git").is_dir()

    def open(
        self, repository: str, home: str, content: Json, body: str, branch: str, base: str
    ) -> Pull | str:
        """A new pull request, or what is wrong: ``exists``, ``head``, ``base`` or ``empty``."""
        head_sha, base_sha = self.branches(home).get(branch), self.branches(repository).get(base)
        if head_sha is None or base_sha is None:
            return "head" if head_sha is None else "base"
        same = [p for p in self.open_pulls() if (p.home, p.branch, p.base) == (home, branch, base)]
        if same and not self.allows_duplicates:
            return "exists"
        if home == repository and not self.git(repository, "rev-list", "-1", f"{base_sha}..{head_sha}"):
            return "empty"
        pull = Pull(len(self.pulls) + 1, repository, home, branch, base, content["title"], body, BOT)
        pull.draft = bool(content.get("draft"))
        self.pulls.append(pull)
        self.head_of(pull)
        return pull

    def patch_of(self, pull: Pull) -> str:
        base = self.branches(pull.repository)[pull.base]
        return self.git(pull.repository, "diff", "--no-color", f"{base}...{self.head_of(pull)}")


class _Dialect:
    def __init__(self, forge: ForgeServer) -> None:
        self.forge = forge

    def of(self, repository: str, number: str) -> Pull | None:
        pulls = [p for p in self.forge.pulls if p.repository == repository and p.number == int(number)]
        return pulls[0] if pulls else None

    def files(self, pull: Pull) -> list[tuple[str, str]]:
        parts = re.split(r"^diff --git ", self.forge.patch_of(pull), flags=re.MULTILINE)[1:]
        return [(re.search(r"^\+\+\+ b/(.*)$", part, re.M)[1], part[part.index("@@") :]) for part in parts]  # type: ignore[index]


class _GitHub(_Dialect):
    def routes(self) -> list[tuple[str, str, Callable[..., Any]]]:
        repo = r"/repos/([^/]+/[^/]+)"
        return [
            ("/user", "GET", lambda **_: {"login": BOT}),
            (repo, "GET", self.repository),
            (f"{repo}/forks", "POST", self.fork),
            (f"{repo}/pulls", "GET", self.list),
            (f"{repo}/pulls", "POST", self.create),
            (rf"{repo}/pulls/(\d+)", "GET", self.get),
            (rf"{repo}/pulls/(\d+)", "PATCH", self.update),
            (rf"{repo}/pulls/(\d+)/files", "GET", self.changed),
            (rf"{repo}/pulls/(\d+)/comments", "GET", self.line_comments),
            (rf"{repo}/pulls/(\d+)/reviews", "POST", self.review),
            (rf"{repo}/issues/(\d+)/comments", "GET", self.comments),
            (rf"{repo}/issues/(\d+)/comments", "POST", self.comment),
            (rf"{repo}/issues/(\d+)/labels", "POST", self.label),
            (rf"{repo}/issues/(\d+)/labels/(.+)", "DELETE", self.unlabel),
        ]

    def repository(self, name: str, **_: Any) -> Any:
        if not self.forge.exists(name):
            return 404, {"message": "Not Found"}
        parent = self.forge.forks.get(name)
        more = {"parent": {"full_name": parent}} if parent else {}
        return {"full_name": name, "default_branch": "main", "fork": parent is not None, **more}

    def fork(self, name: str, **_: Any) -> Any:
        return 202, self.repository(self.forge.fork_of(name, BOT))

    def view(self, pull: Pull) -> Json:
        return {
            "number": pull.number,
            "state": pull.state,
            "title": pull.title,
            "body": pull.body,
            "draft": pull.draft,
            "merged_at": "2026-01-01T00:00:00Z" if pull.merged else None,
            "html_url": f"http://127.0.0.1/{pull.repository}/pull/{pull.number}",
            "head": {"ref": pull.branch, "sha": self.forge.head_of(pull), "repo": {"full_name": pull.home}},
            "base": {"ref": pull.base, "repo": {"full_name": pull.repository}},
            "labels": [{"name": name} for name in pull.labels],
            "user": {"login": pull.author},
        }

    def list(self, name: str, query: Json, **_: Any) -> Any:
        state = query.get("state", "open")
        pulls = [p for p in reversed(self.forge.pulls) if p.repository == name and state in ("all", p.state)]
        if "head" in query:
            owner, _, branch = query["head"].partition(":")
            pulls = [p for p in pulls if p.home.split("/")[0] == owner and p.branch == branch]
        return [self.view(pull) for pull in pulls]

    def create(self, name: str, content: Json, **_: Any) -> Any:
        owner, _, branch = content["head"].rpartition(":")
        home = f"{owner}/{name.split('/')[1]}" if owner else name
        made = self.forge.open(name, home, content, content.get("body") or "", branch, content["base"])
        if isinstance(made, Pull):
            return 201, self.view(made)
        errors: dict[str, Json] = {
            "exists": {"code": "custom", "message": f"A pull request already exists for {owner}:{branch}."},
            "empty": {"code": "custom", "message": f"No commits between {content['base']} and {branch}"},
            "head": {"code": "invalid", "field": "head"},
            "base": {"code": "invalid", "field": "base"},
        }
        return 422, {"message": "Validation Failed", "errors": [{"resource": "PullRequest", **errors[made]}]}

    def get(self, name: str, number: str, **_: Any) -> Any:
        pull = self.of(name, number)
        return self.view(pull) if pull else (404, {"message": "Not Found"})

    def update(self, name: str, number: str, content: Json, **_: Any) -> Any:
        pull = self.of(name, number)
        if pull is None:
            return 404, {"message": "Not Found"}
        self.forge.head_of(pull)
        pull.edits += 1
        pull.title = content.get("title", pull.title)
        pull.body = content.get("body", pull.body)
        pull.state = content.get("state", pull.state)
        return self.view(pull)

    def changed(self, name: str, number: str, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        return [{"filename": path, "patch": patch} for path, patch in self.files(pull)]

    def line_comments(self, name: str, number: str, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        return [{"body": comment["body"]} for comment in pull.line_comments]

    def review(self, name: str, number: str, content: Json, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        pull.line_comments += content["comments"]
        return {"id": 1, "body": ""}

    def comments(self, name: str, number: str, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        return [{"body": comment} for comment in pull.comments]

    def comment(self, name: str, number: str, content: Json, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        pull.comments.append(content["body"])
        return 201, {"body": content["body"]}

    def label(self, name: str, number: str, content: Json, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        pull.labels = list(dict.fromkeys([*pull.labels, *content["labels"]]))
        return [{"name": label} for label in pull.labels]

    def unlabel(self, name: str, number: str, label: str, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        label = urllib.parse.unquote(label)
        if label not in pull.labels:
            return 404, {"message": "Label does not exist"}
        pull.labels.remove(label)
        return [{"name": label} for label in pull.labels]


class _GitLab(_Dialect):
    def routes(self) -> list[tuple[str, str, Callable[..., Any]]]:
        project = r"/projects/([^/]+)"
        request = rf"{project}/merge_requests/(\d+)"
        return [
            ("/user", "GET", lambda **_: {"username": BOT}),
            (project, "GET", self.project),
            (f"{project}/fork", "POST", self.fork),
            (f"{project}/merge_requests", "GET", self.list),
            (f"{project}/merge_requests", "POST", self.create),
            (request, "GET", self.get),
            (request, "PUT", self.update),
            (f"{request}/notes", "GET", self.notes),
            (f"{request}/notes", "POST", self.note),
            (f"{request}/diffs", "GET", self.diffs),
            (f"{request}/discussions", "POST", self.discuss),
        ]

    @staticmethod
    def identifier(name: str) -> int:
        return int(hashlib.sha256(name.encode()).hexdigest()[:6], 16)

    def named(self, place: str) -> str:
        place = urllib.parse.unquote(place)
        if not place.isdecimal():
            return place
        names = [str(path.relative_to(self.forge.root))[:-4] for path in self.forge.root.glob("*/*.git")]
        return next(name for name in names if self.identifier(name) == int(place))

    def project(self, place: str, **_: Any) -> Any:
        name = self.named(place)
        if not self.forge.exists(name):
            return 404, {"message": "404 Project Not Found"}
        parent = self.forge.forks.get(name)
        more = {"forked_from_project": {"id": self.identifier(parent)}} if parent else {}
        return {"id": self.identifier(name), "path_with_namespace": name, "default_branch": "main", **more}

    def fork(self, place: str, **_: Any) -> Any:
        name = self.named(place)
        if f"{BOT}/{name.split('/')[1]}" in self.forge.forks:
            return 409, {"message": {"name": ["has already been taken"]}}
        return 201, self.project(self.forge.fork_of(name, BOT))

    def view(self, pull: Pull) -> Json:
        state = "merged" if pull.merged else "opened" if pull.state == "open" else "closed"
        sha = self.forge.head_of(pull)
        base = self.forge.branches(pull.repository).get(pull.base, "")
        return {
            "iid": pull.number,
            "state": state,
            "title": pull.title,
            "description": pull.body,
            "source_branch": pull.branch,
            "target_branch": pull.base,
            "source_project_id": self.identifier(pull.home),
            "target_project_id": self.identifier(pull.repository),
            "labels": pull.labels,
            "sha": sha,
            "web_url": f"http://127.0.0.1/{pull.repository}/-/merge_requests/{pull.number}",
            "diff_refs": {"base_sha": base, "start_sha": base, "head_sha": sha},
        }

    def list(self, place: str, query: Json, **_: Any) -> Any:
        name, state = self.named(place), query.get("state", "all")
        views = [self.view(pull) for pull in reversed(self.forge.pulls) if pull.repository == name]
        views = [view for view in views if state in ("all", view["state"])]
        return [
            view
            for view in views
            if query.get("source_branch", view["source_branch"]) == view["source_branch"]
        ]

    def create(self, place: str, content: Json, **_: Any) -> Any:
        home = self.named(place)
        target = content.get("target_project_id")
        name = self.named(str(target)) if target else home
        branch = content["source_branch"]
        description = content.get("description") or ""
        made = self.forge.open(name, home, content, description, branch, content["target_branch"])
        if isinstance(made, Pull):
            made.labels = [label for label in content.get("labels", "").split(",") if label]
            return 201, self.view(made)
        if made == "exists":
            return 409, {"message": ["Another open merge request already exists for this source branch: !1"]}
        return 422, {"message": [f"{made} is invalid"]}

    def get(self, place: str, number: str, **_: Any) -> Any:
        pull = self.of(self.named(place), number)
        return self.view(pull) if pull else (404, {"message": "404 Not found"})

    def update(self, place: str, number: str, content: Json, **_: Any) -> Any:
        pull = self.of(self.named(place), number)
        assert pull
        self.forge.head_of(pull)
        pull.edits += 1
        pull.title = content.get("title", pull.title)
        pull.body = content.get("description", pull.body)
        if content.get("state_event") == "close":
            pull.state = "closed"
        gone = content.get("remove_labels", "").split(",")
        pull.labels = [label for label in pull.labels if label not in gone]
        return self.view(pull)

    def notes(self, place: str, number: str, **_: Any) -> Any:
        pull = self.of(self.named(place), number)
        assert pull
        lines = [comment["body"] for comment in pull.line_comments]
        return [{"body": "changed the milestone", "system": True}] + [
            {"body": comment, "system": False} for comment in (*pull.comments, *lines)
        ]

    def note(self, place: str, number: str, content: Json, **_: Any) -> Any:
        pull = self.of(self.named(place), number)
        assert pull
        pull.comments.append(content["body"])
        return 201, {"body": content["body"], "system": False}

    def diffs(self, place: str, number: str, **_: Any) -> Any:
        pull = self.of(self.named(place), number)
        assert pull
        return [{"new_path": path, "diff": patch} for path, patch in self.files(pull)]

    def discuss(self, place: str, number: str, content: Json, **_: Any) -> Any:
        pull = self.of(self.named(place), number)
        assert pull
        pull.line_comments.append({"body": content["body"], **content["position"]})
        return 201, {"id": "1"}


class _Gitea(_GitHub):
    def routes(self) -> list[tuple[str, str, Callable[..., Any]]]:
        repo = r"/repos/([^/]+/[^/]+)"
        own: list[tuple[str, str, Callable[..., Any]]] = [
            (f"{repo}/labels", "GET", self.all_labels),
            (f"{repo}/labels", "POST", self.new_label),
            (rf"{repo}/issues/(\d+)/labels", "POST", self.label),
            (rf"{repo}/issues/(\d+)/labels/(\d+)", "DELETE", self.unlabel),
            (rf"{repo}/pulls/(\d+)\.diff", "GET", self.diff),
            (rf"{repo}/pulls/(\d+)/reviews", "GET", self.reviews),
            (rf"{repo}/pulls/(\d+)/reviews/(\d+)/comments", "GET", self.review_comments),
        ]
        return own + super().routes()

    def view(self, pull: Pull) -> Json:
        view = super().view(pull)
        gone = pull.branch not in self.forge.branches(pull.home)
        ref = f"refs/pull/{pull.number}/head" if gone else pull.branch
        view["head"] |= {"ref": ref, "label": pull.branch}
        view |= {"merged": pull.merged}
        view["labels"] = [{"name": name, "id": self.forge.labels.get(name, 0)} for name in pull.labels]
        return view

    def list(self, name: str, query: Json, **_: Any) -> Any:
        # It ignores what it does not know.
        return super().list(name, query={key: query[key] for key in query if key != "head"})

    def create(self, name: str, content: Json, **_: Any) -> Any:
        code, answer = super().create(name, content=content)
        return (409 if code == 422 else code), answer

    def all_labels(self, name: str, **_: Any) -> Any:
        return [{"id": number, "name": label} for label, number in self.forge.labels.items()]

    def new_label(self, name: str, content: Json, **_: Any) -> Any:
        number = self.forge.labels[content["name"]] = len(self.forge.labels) + 1
        return 201, {"id": number, "name": content["name"]}

    def label(self, name: str, number: str, content: Json, **_: Any) -> Any:
        names = {number: label for label, number in self.forge.labels.items()}
        return super().label(
            name, number, {"labels": [names[identifier] for identifier in content["labels"]]}
        )

    def unlabel(self, name: str, number: str, label: str, **_: Any) -> Any:
        names = {str(number): label for label, number in self.forge.labels.items()}
        super().unlabel(name, number, names[label])
        return 204, None

    def diff(self, name: str, number: str, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        return 200, self.forge.patch_of(pull).encode() + b"\n"

    def reviews(self, name: str, number: str, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        return [{"id": index, "comments_count": 1} for index, _ in enumerate(pull.line_comments)]

    def review_comments(self, name: str, number: str, review: str, **_: Any) -> Any:
        pull = self.of(name, number)
        assert pull
        return [{"body": pull.line_comments[int(review)]["body"]}]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forge: ForgeServer

    def log_message(self, *_: object) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(20)

    def _handle(self) -> None:
        data = self._body()
        request = Request(self.command, self.path, dict(self.headers.items()))
        with self.forge._lock:
            number = len(self.forge.requests)
            self.forge.requests.append(request)
        fault = self.forge.fault(number, request)
        answer = None
        if fault is None or fault.after:
            answer = self._git(data) if request.is_git else self._api(data)
        if fault is not None:
            time.sleep(fault.hang)
            if fault.status is None:
                self.close_connection = True
                self.connection.close()
                return
            answer = fault.status, dict(fault.headers), json.dumps({"message": fault.message}).encode()
        assert answer is not None
        try:
            self._send(*answer)
        except OSError:
            self.close_connection = True  # The client has gone.

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return parts

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _api(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        parts = urllib.parse.urlsplit(self.path)
        given = self.headers.get_all("Authorization") or []
        for_all = self.command == "GET" and not re.search(r"^/api/v\d/user$|/api/v4/.*/notes$", parts.path)
        if given != [f"Bearer {TOKEN}"] and not (self.forge.is_public and for_all and not given):
            return 401, {}, b'{"message": "Bad credentials"}'
        query = dict(urllib.parse.parse_qsl(parts.query))
        status, content = self.forge.answer(self.command, parts.path, query, json.loads(data or b"{}"))
        headers = {"Content-Type": "application/json"}
        if isinstance(content, bytes):
            return status, {"Content-Type": "text/plain"}, content
        if isinstance(content, list) and self.command == "GET":
            content, headers = self._paged(content, query, parts, headers)
        body = json.dumps(content).encode() if content is not None else b""
        if self.command == "GET" and status == 200:
            tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            if self.headers.get("If-None-Match") == tag:
                return 304, {"ETag": tag}, b""
            headers["ETag"] = tag
        return status, headers, body

    def _paged(
        self, items: list[Any], query: dict[str, str], parts: Any, headers: dict[str, str]
    ) -> tuple[list[Any], dict[str, str]]:
        number = int(query.get("page", 1))
        size = min(self.forge.page, int(query.get("per_page", 30)))
        if number * size < len(items):
            following = urllib.parse.urlencode({**query, "page": number + 1})
            host = f"http://127.0.0.1:{self.forge.port}"
            headers = {**headers, "Link": f'<{host}{parts.path}?{following}>; rel="next"'}
        return items[(number - 1) * size : number * size], headers

    def _git(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        given = self.headers.get_all("Authorization") or []
        names = [
            base64.b64encode(f"{user}:{TOKEN}".encode()).decode() for user in ("x-access-token", "oauth2")
        ]
        parts = urllib.parse.urlsplit(self.path)
        for_all = parts.path.endswith("/git-upload-pack") or parts.query == "service=git-upload-pack"
        known = len(given) == 1 and given[0] in [f"Basic {name}" for name in names]
        if not known and not (self.forge.is_public and for_all and not given):
            return 401, {"WWW-Authenticate": 'Basic realm="forge"'}, b""
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.forge.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(data)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": BOT,
            "REMOTE_ADDR": "127.0.0.1",
        }
        # Its standard error is ours: git writes there what it also tells the client.
        done = subprocess.run(["git", "http-backend"], input=data, capture_output=True, env=environment)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(headers.pop("Status", "200").split()[0])
        return status, headers, body
