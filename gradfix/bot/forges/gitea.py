"""Gitea and Forgejo. API version 1."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradfix.bot.errors import AnswerLost, Refused, Unreachable
from gradfix.bot.forges.protocol import Draft, PullRequest, State, Suggestion, lines_of_patch
from gradfix.bot.forges.repository import Repository
from gradfix.bot.http import Json
from gradfix.bot.markdown import fence

API = "https://codeberg.org/api/v1"
HEADERS: dict[str, str] = {}

_COLOUR = "#6f42c1"


class Gitea(Repository):
    """``owner/name`` on Gitea or Forgejo."""

    already_forked = (AnswerLost, Refused)

    def pull_requests(self, branch: str | None = None) -> list[PullRequest]:
        # It cannot be asked for those of one branch.
        found = self._listed("open" if branch is None else "all")
        return [item for item in found if branch is None or item.branch == branch]

    def all_pull_requests(self, most: int) -> list[PullRequest] | None:
        return self._listed("all")

    def _listed(self, state: str) -> list[PullRequest]:
        # Newer versions know `per_page` as well as `limit`.
        items = self._http.pages(
            f"/repos/{self._repository}/pulls", state=state, sort="recentupdate", limit="50"
        )
        return sorted(map(self._read, items), key=lambda item: -item.number)

    def pull_request(self, number: int) -> PullRequest:
        return self._read(self._http.get(f"/repos/{self._repository}/pulls/{number}"))

    def _read(self, item: Json) -> PullRequest:
        state: State = "merged" if item.get("merged") else "open" if item["state"] == "open" else "closed"
        head = item["head"]
        # When the branch is deleted, `ref` becomes refs/pull/1/head; the label keeps its name.
        branch = head["label"] if head["ref"].startswith("refs/") else head["ref"]
        repository = head.get("repo") or {}
        return PullRequest(
            number=item["number"],
            state=state,
            title=item["title"],
            body=item.get("body") or "",
            branch=branch.rsplit(":", 1)[-1],
            base=item["base"]["ref"],
            labels=tuple(label["name"] for label in item.get("labels") or ()),
            url=item.get("html_url") or "",
            ours=repository.get("full_name", "").lower() == self._pushed_to().lower(),
            head=head.get("sha") or "",
        )

    def create(self, draft: Draft) -> PullRequest:
        owner = self._pushed_to().split("/")[0]
        content = {
            "title": f"WIP: {draft.title}" if draft.draft else draft.title,
            "head": f"{owner}:{draft.branch}" if self._fork else draft.branch,
            "base": draft.base,
            "body": draft.body,
        }
        return self._read(self._http.post(f"/repos/{self._repository}/pulls", content))

    def update(
        self, number: int, *, title: str | None = None, body: str | None = None, close: bool = False
    ) -> None:
        content = {"title": title, "body": body, "state": "closed" if close else None}
        given = {key: value for key, value in content.items() if value is not None}
        self._http.change("PATCH", f"/repos/{self._repository}/pulls/{number}", given)

    def comments(self, number: int) -> list[str]:
        place = f"/repos/{self._repository}"
        found = [item.get("body") or "" for item in self._http.get(f"{place}/issues/{number}/comments")]
        for review in self._http.pages(f"{place}/pulls/{number}/reviews", limit="50"):
            if review.get("comments_count"):
                comments = self._http.get(f"{place}/pulls/{number}/reviews/{review['id']}/comments")
                found += [item.get("body") or "" for item in comments]
        return found

    def comment(self, number: int, body: str) -> None:
        self._http.post(f"/repos/{self._repository}/issues/{number}/comments", {"body": body})

    def label(self, number: int, labels: Sequence[str]) -> None:
        identifiers = [self._label_id(name) or self._new_label(name) for name in labels]
        self._http.post(f"/repos/{self._repository}/issues/{number}/labels", {"labels": identifiers})

    def _label_id(self, name: str) -> int | None:
        for item in self._http.pages(f"/repos/{self._repository}/labels", limit="50"):
            if item["name"] == name:
                return int(item["id"])
        return None

    def _new_label(self, name: str) -> int:
        try:
            content = {"name": name, "color": _COLOUR}
            return int(self._http.post(f"/repos/{self._repository}/labels", content)["id"])
        except AnswerLost as error:
            found = self._label_id(name)
            if found is None:
                raise Unreachable(str(error)) from None
            return found

    def unlabel(self, number: int, label: str) -> None:
        identifier = self._label_id(label)
        if identifier is not None:
            self._http.change("DELETE", f"/repos/{self._repository}/issues/{number}/labels/{identifier}")

    def head_ref(self, number: int) -> str:
        return f"refs/pull/{number}/head"

    def changed_lines(self, number: int) -> dict[str, set[int]]:
        text = self._http.text(f"/repos/{self._repository}/pulls/{number}.diff")
        files = re.split(r"^diff --git ", text, flags=re.MULTILINE)[1:]
        named = [(re.search(r"^\+\+\+ b/(.*?)\t?$", file, re.MULTILINE), file) for file in files]
        return {match[1]: lines_of_patch(file) for match, file in named if match}

    def suggest(self, request: PullRequest, suggestion: Suggestion) -> None:
        # It shows no button for a suggestion, so the lines are only shown.
        body = f"{suggestion.body}\n\n{fence(suggestion.replacement, 'python')}"
        comment = {"path": suggestion.path, "new_position": suggestion.end, "body": body}
        content = {"commit_id": request.head, "event": "COMMENT", "comments": [comment]}
        self._http.post(f"/repos/{self._repository}/pulls/{request.number}/reviews", content)
