"""What exists: the bot's branches, its pull requests, and what people have declined."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from gradfix.bot import merging, state
from gradfix.bot.errors import Missing
from gradfix.bot.forges.protocol import Forge, PullRequest
from gradfix.bot.git import Git, Remote

_CLOSED = "refs/gradfix/closed"


class Existing:
    """The pull requests of the bot, and its branches, as they are at the beginning of a run."""

    def __init__(self, forge: Forge, git: Git, remote: Remote, base: str, tip: str) -> None:
        """``remote`` holds the branch ``base``, at the commit ``tip``; our branches have been fetched."""
        self._forge = forge
        self._git = git
        self._remote = remote
        self._base = base
        self._tip = tip
        self.heads = git.heads()
        self.open: dict[str, PullRequest] = {}
        self._histories: dict[str, list[PullRequest]] = {}
        self._complete = False
        self._own: dict[str, str | None] = {}

    def look(self, branches: Collection[str]) -> None:
        """Ask the forge. One list is read instead of one for each of ``branches``, if it takes no longer."""
        everything = self._forge.all_pull_requests(max(1, len(branches | self.heads.keys())))
        self._complete = everything is not None
        requests = self._forge.pull_requests() if everything is None else everything
        for request in requests:
            if request.ours and request.branch.startswith(state.PREFIX):
                if everything is not None:
                    self._histories.setdefault(request.branch, []).append(request)
                if request.state == "open":
                    self.open.setdefault(request.branch, request)

    def history(self, branch: str) -> list[PullRequest]:
        """Every pull request from a branch of ours, the newest first."""
        if branch not in self._histories:
            found = [] if self._complete else self._forge.pull_requests(branch)
            self._histories[branch] = [request for request in found if request.ours]
        return self._histories[branch]

    def refused(self, branches: Iterable[str]) -> Iterator[tuple[PullRequest, tuple[state.Key, ...]]]:
        """The pull requests that a person has closed, with what they held: those from ``branches``, and all
        others that are known."""
        for branch in dict.fromkeys([*branches, *self._histories]):
            for request in self.history(branch):
                marker = state.parsed(request.body)[0]
                if request.state == "closed" and marker is not None and not marker.settled:
                    yield request, marker.keys

    def own_commit(self, branch: str) -> str | None:
        """Our commit in a branch to which a person has added only merges of the base; else ``None``."""
        if branch not in self._own:
            self._own[branch] = merging.own_commit(
                self._git, self.heads[branch], self._tip, lambda: self._deepen(branch)
            )
        return self._own[branch]

    def _deepen(self, branch: str) -> None:
        self._git.deepen(self._remote, (self._base, branch))

    def commit_of(self, request: PullRequest) -> str | None:
        """The last commit of a pull request, fetched if it is not here; ``None`` if it cannot be had."""
        head = self.heads.get(request.branch)
        if head is not None and (request.state == "open" or head == request.head):
            return (self.own_commit(request.branch) or head) if request.state == "open" else head
        try:
            return self._git.fetch_ref(self._remote, self._forge.head_ref(request.number), _CLOSED)
        except Missing:
            return None
