"""GitHub, and GitHub Enterprise Server. REST API version 2022-11-28."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from gradfix.bot.forges.protocol import Draft, PullRequest, State, Suggestion, lines_of_patch
from gradfix.bot.forges.repository import Repository
from gradfix.bot.http import Json
from gradfix.bot.markdown import fence

API = "https://api.github.com"
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class GitHub(Repository):
    """``owner/name`` on GitHub.

    A fork that is there already is what it answers with, so nothing is created twice.
    """

    def pull_requests(self, branch: str | None = None) -> list[PullRequest]:
        parameters = {"state": "open"}
        if branch is not None:
            owner = self._pushed_to().split("/")[0]
            parameters = {"state": "all", "head": f"{owner}:{branch}"}
        items = self._http.pages(f"/repos/{self._repository}/pulls", **parameters)
        found = [self._read(item) for item in items]
        return [item for item in found if branch is None or item.branch == branch]

    def all_pull_requests(self, most: int) -> list[PullRequest] | None:
        items = self._http.few_pages(f"/repos/{self._repository}/pulls", most, state="all")
        return None if items is None else [self._read(item) for item in items]

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
