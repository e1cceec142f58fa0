"""GitLab, gitlab.com or one's own. REST API version 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from gradfix.bot.errors import AnswerLost, BotError, Missing, Refused, Unreachable
from gradfix.bot.forges.protocol import Draft, PullRequest, State, Suggestion, lines_of_patch
from gradfix.bot.http import Http, Json
from gradfix.bot.markdown import fence

API = "https://gitlab.com/api/v4"
HEADERS: dict[str, str] = {}

_STATES: dict[str, State] = {"opened": "open", "locked": "open", "merged": "merged"}


class GitLab:
    """``group/name`` on GitLab; groups may lie in groups."""

    user = "oauth2"
    opens_with_labels = True

    def __init__(self, http: Http, repository: str, git_url: str, *, fork: bool = False) -> None:
        """``git_url`` is the server without the repository: ``https://gitlab.com``."""
        self._http = http
        self._repository = repository
        self._git_url = git_url.rstrip("/")
        self._fork = fork
        self._project: Json = {}
        self._home: Json = {}

    @staticmethod
    def _place(path: str) -> str:
        return f"/projects/{quote(path, safe='')}"

    def _target(self) -> Json:
        """The project that merge requests go to."""
        if not self._project:
            self._project = self._http.get(self._place(self._repository))
        return self._project

    def _source(self) -> Json:
        """The project that holds our branches."""
        if not self._fork:
            return self._target()
        if not self._home:
            namespace = self._http.get("/user")["username"]
            mine = f"{namespace}/{self._repository.rsplit('/', 1)[1]}"
            self._home = self._existing_fork(mine) or self._new_fork(mine)
        return self._home

    def _existing_fork(self, name: str) -> Json | None:
        try:
            found: Json = self._http.get(self._place(name))
        except Missing:
            return None
        origin = found.get("forked_from_project") or {}
        return found if origin.get("id") == self._target()["id"] else None

    def _new_fork(self, name: str) -> Json:
        try:
            created: Json = self._http.post(f"{self._place(self._repository)}/fork", {})
            return created
        except (AnswerLost, Refused) as error:
            found = self._existing_fork(name)
            if found is None:
                raise Unreachable(str(error)) from None
            return found

    def default_branch(self) -> str:
        return str(self._target()["default_branch"])

    def clone_url(self) -> str:
        return f"{self._git_url}/{self._repository}.git"

    def push_url(self) -> str:
        path = self._source()["path_with_namespace"] if self._fork else self._repository
        return f"{self._git_url}/{path}.git"

    def _requests(self) -> str:
        return f"{self._place(self._repository)}/merge_requests"

    def pull_requests(self, branch: str | None = None) -> list[PullRequest]:
        wanted = {"state": "opened"} if branch is None else {"state": "all", "source_branch": branch}
        return [self._read(item) for item in self._http.pages(self._requests(), **wanted)]

    def all_pull_requests(self, most: int) -> list[PullRequest] | None:
        items = self._http.few_pages(self._requests(), most, state="all")
        return None if items is None else [self._read(item) for item in items]

    def pull_request(self, number: int) -> PullRequest:
        return self._read(self._http.get(f"{self._requests()}/{number}"))

    def _read(self, item: Json) -> PullRequest:
        return PullRequest(
            number=item["iid"],
            state=_STATES.get(item["state"], "closed"),
            title=item["title"],
            body=item.get("description") or "",
            branch=item["source_branch"],
            base=item["target_branch"],
            labels=tuple(item.get("labels") or ()),
            url=item.get("web_url") or "",
            ours=item.get("source_project_id") == self._source()["id"],
            head=item.get("sha") or "",
        )

    def create(self, draft: Draft) -> PullRequest:
        content: dict[str, Any] = {
            "source_branch": draft.branch,
            "target_branch": draft.base,
            "title": f"Draft: {draft.title}" if draft.draft else draft.title,
            "description": draft.body,
        }
        if draft.labels:
            content["labels"] = ",".join(draft.labels)
        if self._fork:
            content["target_project_id"] = self._target()["id"]
        place = f"/projects/{self._source()['id']}/merge_requests" if self._fork else self._requests()
        return self._read(self._http.post(place, content))

    def update(
        self, number: int, *, title: str | None = None, body: str | None = None, close: bool = False
    ) -> None:
        content = {"title": title, "description": body, "state_event": "close" if close else None}
        given = {key: value for key, value in content.items() if value is not None}
        self._http.change("PUT", f"{self._requests()}/{number}", given)

    def comments(self, number: int) -> list[str]:
        notes = self._http.pages(f"{self._requests()}/{number}/notes")
        return [note.get("body") or "" for note in notes if not note.get("system")]

    def comment(self, number: int, body: str) -> None:
        self._http.post(f"{self._requests()}/{number}/notes", {"body": body})

    def label(self, number: int, labels: Sequence[str]) -> None:
        """Nothing: a merge request is created with its labels."""

    def unlabel(self, number: int, label: str) -> None:
        self._http.change("PUT", f"{self._requests()}/{number}", {"remove_labels": label})

    def head_ref(self, number: int) -> str:
        return f"refs/merge-requests/{number}/head"

    def changed_lines(self, number: int) -> dict[str, set[int]]:
        files = self._http.pages(f"{self._requests()}/{number}/diffs")
        return {item["new_path"]: lines_of_patch(item.get("diff") or "") for item in files}

    def suggest(self, request: PullRequest, suggestion: Suggestion) -> None:
        refs = self._http.get(f"{self._requests()}/{request.number}").get("diff_refs")
        if not refs:
            raise BotError("GitLab has not worked out yet what the merge request changes")
        above = suggestion.end - suggestion.start
        body = f"{suggestion.body}\n\n{fence(suggestion.replacement, f'suggestion:-{above}+0')}"
        position = {
            "position_type": "text",
            "base_sha": refs["base_sha"],
            "start_sha": refs["start_sha"],
            "head_sha": refs["head_sha"],
            "old_path": suggestion.path,
            "new_path": suggestion.path,
            "new_line": suggestion.end,
        }
        content = {"body": body, "position": position}
        self._http.post(f"{self._requests()}/{request.number}/discussions", content)
