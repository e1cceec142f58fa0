"""What GitHub and Gitea have in common: owners, repositories and forks have the same addresses."""

from __future__ import annotations

from gradfix.bot.errors import AnswerLost, Missing, Unreachable
from gradfix.bot.http import Http


class Repository:
    """``owner/name``, and the repository that our branches are pushed to: the same, or a fork."""

    already_forked: tuple[type[Exception], ...] = (AnswerLost,)
    """What asking for a fork may raise although it is there (afterwards, or already)."""
    user = "x-access-token"
    opens_with_labels = False

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
        try:
            return str(self._http.post(f"/repos/{self._repository}/forks", {})["full_name"])
        except self.already_forked as error:
            found = self._existing_fork(name)
            if found is None:
                raise Unreachable(str(error)) from None
            return found
