"""The fields that the bot reads and writes, against those that the forges' own API descriptions name.

``SHAPES`` records, for the fields in use only, what the descriptions say of them. Two things are held against
it, in a run of everything that the bot can do: what the clients take out of answers, and what the forge of
these tests puts in, so that it is no kinder than the real ones. A question mark says that a value may be null
or absent.

What was compared, field by field, in November 2026:

- **GitHub**: every operation, request field, answer field, type, ``required`` and ``nullable``, in the
  description of api.github.com that github/rest-api-description publishes, as the npm package
  ``@octokit/openapi`` carries it (``generated/api.github.com.json``): 19.1.0 and 22.0.0, from when the only
  version was 2022-11-28, which the client asks for, and 23.0.2, which describes 2026-03-10. Of what is used
  they say the same. One mark is stricter than they are: they call ``head.repo`` of a pull request required,
  and it is null once the fork has been deleted.
- **GitLab**: ``doc/api/openapi/openapi_v3.yaml`` of the mirror gitlabhq/gitlabhq at commit 045bf8777ea8: the
  operations on a project, its fork, its merge requests, one of them and its ``diffs``, what POST and PUT of a
  merge request take, and the entities of project, note and discussion. The merge request was read there as
  ``MergeRequestChanges``, which is it and ``changes``. What was not found in that file was read in what it is
  generated from, in whatever state that could be had: the entities ``Diff``, ``DiffRefs`` and ``UserSafe``,
  and the parameters in ``lib/api/notes.rb`` and ``lib/api/discussions.rb``. The description requires no field
  of an answer and calls none nullable, so the marks are not from it. It calls ``labels`` and
  ``remove_labels`` of a request lists of strings and, in words, comma-separated names; the names are sent
  with commas between them.
- **Gitea**: not the generated ``v1_json.tmpl`` itself but the types that it is generated from, in
  ``modules/structs`` of go-gitea/gitea: ``pull.go``, ``pull_review.go``, ``issue_label.go``,
  ``issue_comment.go``, ``repo.go`` and ``user.go``. They say nothing of paths, and nothing of null but by
  being pointers, so the paths and the marks are not from there. Forgejo was not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from forge_server import ForgeServer, Pull
from world import BRANCH, FIXED_GAN, REPOSITORY, RETAINED, World

from gradfix.bot import review
from gradfix.bot.http import Http

REPO = {"full_name": "str", "default_branch": "str", "fork": "bool", "parent?": {"full_name": "str"}}
COMMENT = {"body": "str"}
GITHUB_COMMENT = {"body?": "str"}
"""On the pull request as a whole; GitHub requires the body of one on lines only."""
SHAPES: dict[str, dict[str, Any]] = {
    "github": {
        "GET /user": {"login": "str"},
        "GET /repos/:repo": REPO,
        "POST /repos/:repo/forks": REPO,
        "pull": {
            "number": "int",
            "state": "str",
            "title": "str",
            "body?": "str",
            "html_url": "str",
            "merged_at?": "str",
            "labels": [{"name": "str"}],
            "head": {"ref": "str", "sha": "str", "repo?": {"full_name": "str"}},
            "base": {"ref": "str"},
        },
        "GET /repos/:repo/pulls": ["pull"],
        "POST /repos/:repo/pulls": "pull",
        "GET /repos/:repo/pulls/:n": "pull",
        "PATCH /repos/:repo/pulls/:n": "pull",
        "GET /repos/:repo/pulls/:n/files": [{"filename": "str", "patch?": "str"}],
        "GET /repos/:repo/pulls/:n/comments": [COMMENT],
        "POST /repos/:repo/pulls/:n/reviews": {},
        "GET /repos/:repo/issues/:n/comments": [GITHUB_COMMENT],
        "POST /repos/:repo/issues/:n/comments": GITHUB_COMMENT,
        "POST /repos/:repo/issues/:n/labels": [{"name": "str"}],
        "DELETE /repos/:repo/issues/:n/labels/:x": [{"name": "str"}],
        "sent": {
            "POST /repos/:repo/pulls": {"title", "head", "base", "body", "draft"},
            "PATCH /repos/:repo/pulls/:n": {"title", "body", "state"},
            "POST /repos/:repo/issues/:n/comments": {"body"},
            "POST /repos/:repo/issues/:n/labels": {"labels"},
            "POST /repos/:repo/pulls/:n/reviews": {"commit_id", "event", "comments"},
        },
    },
    "gitlab": {
        "GET /user": {"username": "str"},
        "project": {
            "id": "int",
            "path_with_namespace": "str",
            "default_branch": "str",
            "forked_from_project?": {"id": "int"},
        },
        "GET /projects/:repo": "project",
        "POST /projects/:repo/fork": "project",
        "request": {
            "iid": "int",
            "state": "str",
            "title": "str",
            "description?": "str",
            "source_branch": "str",
            "target_branch": "str",
            "source_project_id?": "int",
            "labels": ["str"],
            "sha?": "str",
            "web_url": "str",
            "diff_refs?": {"base_sha": "str", "start_sha": "str", "head_sha": "str"},
        },
        "GET /projects/:repo/merge_requests": ["request"],
        "POST /projects/:repo/merge_requests": "request",
        "GET /projects/:repo/merge_requests/:n": "request",
        "PUT /projects/:repo/merge_requests/:n": "request",
        "GET /projects/:repo/merge_requests/:n/notes": [{"body": "str", "system": "bool"}],
        "POST /projects/:repo/merge_requests/:n/notes": {"body": "str"},
        "GET /projects/:repo/merge_requests/:n/diffs": [{"new_path": "str", "diff": "str"}],
        "POST /projects/:repo/merge_requests/:n/discussions": {},
        "sent": {
            "POST /projects/:repo/merge_requests": {
                "source_branch",
                "target_branch",
                "title",
                "description",
                "labels",
                "target_project_id",
            },
            "PUT /projects/:repo/merge_requests/:n": {"title", "description", "state_event", "remove_labels"},
            "POST /projects/:repo/merge_requests/:n/notes": {"body"},
            "POST /projects/:repo/merge_requests/:n/discussions": {"body", "position"},
        },
    },
    "gitea": {
        "GET /user": {"login": "str"},
        "GET /repos/:repo": REPO,
        "POST /repos/:repo/forks": REPO,
        "pull": {
            "number": "int",
            "state": "str",
            "title": "str",
            "body": "str",
            "html_url": "str",
            "merged": "bool",
            "labels?": [{"id": "int", "name": "str"}],
            "head": {"label": "str", "ref": "str", "sha": "str", "repo?": {"full_name": "str"}},
            "base": {"ref": "str"},
        },
        "GET /repos/:repo/pulls": ["pull"],
        "POST /repos/:repo/pulls": "pull",
        "GET /repos/:repo/pulls/:n": "pull",
        "PATCH /repos/:repo/pulls/:n": "pull",
        "GET /repos/:repo/pulls/:n/reviews": [{"id": "int", "comments_count": "int"}],
        "GET /repos/:repo/pulls/:n/reviews/:n/comments": [COMMENT],
        "POST /repos/:repo/pulls/:n/reviews": {},
        "GET /repos/:repo/issues/:n/comments": [COMMENT],
        "POST /repos/:repo/issues/:n/comments": COMMENT,
        "GET /repos/:repo/labels": [{"id": "int", "name": "str"}],
        "POST /repos/:repo/labels": {"id": "int", "name": "str"},
        "POST /repos/:repo/issues/:n/labels": [{"name": "str"}],
        "DELETE /repos/:repo/issues/:n/labels/:n": None,
        "sent": {
            "POST /repos/:repo/pulls": {"title", "head", "base", "body"},
            "PATCH /repos/:repo/pulls/:n": {"title", "body", "state"},
            "POST /repos/:repo/issues/:n/comments": {"body"},
            "POST /repos/:repo/labels": {"name", "color"},
            "POST /repos/:repo/issues/:n/labels": {"labels"},
            "POST /repos/:repo/pulls/:n/reviews": {"commit_id", "event", "comments"},
        },
    },
}
"""What the descriptions say of the fields that are used."""


class Watched(dict[str, Any]):
    """An object of an answer that writes down which of its fields are read."""

    def __init__(self, content: dict[str, Any], place: str, read: set[str]) -> None:
        super().__init__({key: watched(value, f"{place}.{key}", read) for key, value in content.items()})
        self.place, self.read = place, read

    def __getitem__(self, key: str) -> Any:
        self.read.add(f"{self.place}.{key}")
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(f"{self.place}.{key}?")
        return super().get(key, default)


def watched(value: Any, place: str, read: set[str]) -> Any:
    if isinstance(value, dict):
        return Watched(value, place, read)
    return [watched(item, f"{place}[]", read) for item in value] if isinstance(value, list) else value


def named(kind: str, method: str, path: str) -> str:
    """The operation of a request: ``GET /repos/:repo/pulls/:n``."""
    path = re.sub(r"^.*?/api/v\d", "", path.split("?")[0])
    path = re.sub(
        r"^/projects/[^/]+" if kind == "gitlab" else r"^/repos/[^/]+/[^/]+",
        "/projects/:repo" if kind == "gitlab" else "/repos/:repo",
        path,
    )
    path = re.sub(r"/\d+(?=/|$)", "/:n", path)
    return f"{method} {re.sub(r'/labels/(?!:)[^/]+$', '/labels/:x', path)}"


def shape_of(kind: str, operation: str) -> Any:
    shape = SHAPES[kind][operation]
    if isinstance(shape, str):
        return SHAPES[kind][shape]
    return (
        [SHAPES[kind].get(item, item) for item in shape]
        if isinstance(shape, list) and isinstance(shape[0], str)
        else shape
    )


def fields_of(shape: Any, place: str) -> Iterator[str]:
    """Every field of a shape as ``Watched`` writes it down; one that may be absent may only be asked for."""
    if isinstance(shape, list):
        yield from fields_of(shape[0], f"{place}[]")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = key.rstrip("?")
            yield f"{place}.{name}?"
            if not key.endswith("?"):
                yield f"{place}.{name}"
            yield from fields_of(inner, f"{place}.{name}")


def assert_fits(value: Any, shape: Any, place: str) -> None:
    """An answer of the forge of these tests has what the description says that answers have."""
    if isinstance(shape, list):
        assert isinstance(value, list), place
        for item in value:
            assert_fits(item, shape[0], f"{place}[]")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = key.rstrip("?")
            if key.endswith("?") and value.get(name) is None:
                continue
            assert_fits(value[name], inner, f"{place}.{name}")
    elif shape is not None:
        assert type(value).__name__ == shape, (place, value)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", SHAPES)
def test_only_described_fields_are_used(
    forge: ForgeServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: set[str] = set()
    described: set[str] = set()
    seen: set[str] = set()
    answered = Http._json

    def watch(self: Http, method: str, response: Any) -> Any:
        content = answered(self, method, response)
        operation = named(kind, method, str(response.request.url))
        seen.add(operation)
        if content is None:
            return None
        shape = shape_of(kind, operation)
        assert_fits(content, shape, operation)
        described.update(fields_of(shape, operation))
        return watched(content, operation, read)

    sent: dict[str, set[str]] = {}
    send = Http._send

    def note(self: Http, method: str, url: str, content: Any = None) -> Any:
        if content:
            sent.setdefault(named(kind, method, url), set()).update(content)
        return send(self, method, url, content)

    monkeypatch.setattr(Http, "_json", watch)
    monkeypatch.setattr(Http, "_send", note)
    everything(World(forge, kind))
    assert read <= described, read - described
    allowed = SHAPES[kind]["sent"]
    assert {
        name: keys - allowed.get(name, set())
        for name, keys in sent.items()
        if keys - allowed.get(name, set())
    } == {}
    missed = {name for name in SHAPES[kind] if " " in name} - seen
    assert missed == set(), "the run does not reach these"


def everything(lab: World) -> None:
    """All that the bot can do: open with labels, find again, update, rebuild, close, fork, review."""
    forge = lab.forge
    forge.commit(REPOSITORY, "main", {"pyproject.toml": b'[tool.gradfix.bot]\nlabels = ["gradients"]\n'})

    def plan() -> Any:
        return lab.plan(select=("undetached-fake",))

    lab.publish(plan(), base=None)
    forge.commit(REPOSITORY, "main", {"notes.md": b"more\n"})
    forge.commit(REPOSITORY, BRANCH, {"mine.md": b"by hand\n"})
    forge.labels.setdefault("gradfix-rebuild", 99)
    forge.pulls[0].labels.append("gradfix-rebuild")
    lab.publish(plan())
    forge.git(REPOSITORY, "branch", "topic", "main")
    forge.commit(REPOSITORY, "topic", {"new.py": RETAINED})
    made = forge.open(REPOSITORY, REPOSITORY, {"title": "work"}, "", "topic", "main")
    assert isinstance(made, Pull)
    for _ in range(2):
        with lab.connected() as (served, git, token):
            review.review(
                lab.plan("topic", select=("needless-retain-graph",)), made.number, served, git, token
            )
    forge.commit(REPOSITORY, "main", {"models/gan.py": FIXED_GAN})
    lab.publish(plan())
    assert forge.pulls[0].state == "closed"
    lab.publish(lab.plan(select=("carried-hidden-state",)), fork=True)
    lab.publish(lab.plan(select=("carried-hidden-state",)), fork=True)


def test_a_request_is_named_by_its_operation() -> None:
    assert named("github", "GET", "http://h/api/v3/repos/a/b/pulls/12?x=1") == "GET /repos/:repo/pulls/:n"
    assert (
        named("gitlab", "PUT", "http://h/api/v4/projects/a%2Fb/merge_requests/1")
        == "PUT /projects/:repo/merge_requests/:n"
    )
