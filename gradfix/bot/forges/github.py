"""GitHub, and GitHub Enterprise Server. REST API version 2022-11-28."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from gradfix.bot.errors import AnswerLost, Missing, Unreachable
from gradfix.bot.forges.protocol import Draft, PullRequest, State, Suggestion, lines_of_patch
from gradfix.bot.http import Http, Json
from gradfix.bot.markdown import fence

API = "https://api.github.com"
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class GitHub:
    """``owner/name`` on GitHub."""

    user = "x-access-token"

    def __init__(self, http: Http, repository: str, git_url: str, *, fork: bool = False) -> None:
        """``git_url`` is the server without the repository: ``https://github.com``."""
        self._http = http
        self._repository = repository
        self._git_url = git_url.rstrip("/")
        self._fork = fork
        self._home = "" if fork else repository

    def default_branch(self) -> str:
        return str(self._http.get(f"/repos/{self._repository}")["default_branch"])

    def clone_url(self) -> str:
        return f"{self._git_url}/{self._repository}.git"

    def push_url(self) -> str:
        return f"{self._git_url}/{self._pushed_to()}.git"

    def _pushed_to(self) -> str:
        """The full name of the repository that holds our branches."""
        if not self._home:
            owner = self._http.get("/user")["login"]
            mine = f"{owner}/{self._repository.rsplit('/', 1)[1]}"
            self._home = self._existing_fork(mine) or self._new_fork(mine)
        return self._home

    def _existing_fork(self, name: str) -> str | None:
        try:
            found = self._http.get(f"/repos/{name}")
        except Missing:
            return None
        parent = found.get("parent") or {}
        same = parent.get("full_name", "").lower() == self._repository.lower()
        return str(found["full_name"]) if found.get("fork") and same else None

    def _new_fork(self, name: str) -> str:
        # A fork that is there already is what GitHub answers with, so nothing is created twice.
        try:
            return str(self._http.post(f"/repos/{self._repository}/forks", {})["full_name"])
        except AnswerLost as error:
            found = self._existing_fork(name)
            if found is None:
                raise Unreachable(str(error)) from None
            return found

    def pull_requests(self, branch: str | None = None) -> list[PullRequest]:
        parameters = {"state": "open"}
        if branch is not None:
            owner = self._pushed_to().split("/")[0]
            parameters = {"state": "all", "head": f"{owner}:{branch}"}
        items = self._http.pages(f"/repos/{self._repository}/pulls", **parameters)
        found = [self._read(item) for item in items]
        return [item for item in found if branch is None or item.branch == branch]

    def pull_request(self, number: int) -> PullRequest:
        return self._read(self._http.get(f"/repos/{self._repository}/pulls/{number}"))

    def _read(self, item: Json) -> PullRequest:
        state: State = "merged" if item.get("merged_at") else "open" if item["state"] == "open" else "closed"
        repository = item["head"].get("repo") or {}  # null if the fork was deleted
        return PullRequest(
            number=item["number"],
            state=state,
            title=item["title"],
            body=item.get("body") or "",
            branch=item["head"]["ref"],
            base=item["base"]["ref"],
            labels=tuple(label["name"] for label in item.get("labels") or ()),
            url=item.get("html_url") or "",
            ours=repository.get("full_name", "").lower() == self._pushed_to().lower(),
            head=item["head"]["sha"],
        )

    def create(self, draft: Draft) -> PullRequest:
        owner = self._pushed_to().split("/")[0]
        content = {
            "title": draft.title,
            "head": f"{owner}:{draft.branch}" if self._fork else draft.branch,
            "base": draft.base,
            "body": draft.body,
            "draft": draft.draft,
        }
        return self._read(self._http.post(f"/repos/{self._repository}/pulls", content))

    def update(
        self, number: int, *, title: str | None = None, body: str | None = None, close: bool = False
    ) -> None:
        content = {"title": title, "body": body, "state": "closed" if close else None}
        given = {key: value for key, value in content.items() if value is not None}
        self._http.change("PATCH", f"/repos/{self._repository}/pulls/{number}", given)

    def comments(self, number: int) -> list[str]:
        places = (f"/issues/{number}/comments", f"/pulls/{number}/comments")
        found = [item for place in places for item in self._http.pages(f"/repos/{self._repository}{place}")]
        return [item.get("body") or "" for item in found]

    def comment(self, number: int, body: str) -> None:
        self._http.post(f"/repos/{self._repository}/issues/{number}/comments", {"body": body})

    def label(self, number: int, labels: Sequence[str]) -> None:
        # A set: to add a label twice is to add it once.
        self._http.post(f"/repos/{self._repository}/issues/{number}/labels", {"labels": list(labels)})

    def unlabel(self, number: int, label: str) -> None:
        name = quote(label, safe="")
        self._http.change("DELETE", f"/repos/{self._repository}/issues/{number}/labels/{name}")

    def head_ref(self, number: int) -> str:
        return f"refs/pull/{number}/head"

    def changed_lines(self, number: int) -> dict[str, set[int]]:
        files = self._http.pages(f"/repos/{self._repository}/pulls/{number}/files")
        return {item["filename"]: lines_of_patch(item.get("patch") or "") for item in files}

    def suggest(self, request: PullRequest, suggestion: Suggestion) -> None:
        body = f"{suggestion.body}\n\n{fence(suggestion.replacement, 'suggestion')}"
        comment: dict[str, Any] = {
            "path": suggestion.path,
            "line": suggestion.end,
            "side": "RIGHT",
            "body": body,
        }
        if suggestion.start != suggestion.end:
            comment |= {"start_line": suggestion.start, "start_side": "RIGHT"}
        content = {"commit_id": request.head, "event": "COMMENT", "comments": [comment]}
        self._http.post(f"/repos/{self._repository}/pulls/{request.number}/reviews", content)
