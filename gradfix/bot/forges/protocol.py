"""What the bot asks of a forge, in the words of none of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["open", "closed", "merged"]


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request (GitLab: merge request)."""

    number: int
    state: State
    title: str
    body: str
    branch: str
    """The name of its branch, in the repository that the bot pushes to."""
    base: str
    labels: tuple[str, ...]
    url: str
    ours: bool
    """Whether its branch is in the repository that the bot pushes to: anybody may name a branch as we do."""
    head: str
    """The last commit of its branch, as far as the forge knows."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A pull request to be."""

    title: str
    body: str
    branch: str
    base: str
    labels: tuple[str, ...] = ()
    draft: bool = False


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A comment on lines of a pull request that replaces them."""

    path: str
    start: int
    end: int
    """Lines of the file as the pull request has it, both included, counted from 1."""
    body: str
    """The comment, without the replacement."""
    replacement: str
    """The lines that are to stand there instead."""


class Forge(Protocol):
    """One repository on a forge."""

    user: str
    """The name that goes with the token when git authenticates."""
    opens_with_labels: bool
    """Whether labels are set as a pull request is opened; else they have to be set afterwards."""

    def default_branch(self) -> str:
        """The default base branch of pull requests."""

    def clone_url(self) -> str:
        """Where the repository itself is."""

    def push_url(self) -> str:
        """Where the bot pushes: the repository, or the bot's fork of it, which is made if it is not there."""

    def pull_requests(self, branch: str | None = None) -> list[PullRequest]:
        """All pull requests from ``branch``, the newest first; without it, all open ones."""

    def all_pull_requests(self, most: int) -> list[PullRequest] | None:
        """All there ever were, the newest first; ``None`` if that takes more than ``most`` requests."""

    def pull_request(self, number: int) -> PullRequest:
        """One pull request."""

    def create(self, draft: Draft) -> PullRequest:
        """Open a pull request.

        Raises:
            AnswerLost: it may have been opened.
            Refused: there may be one already.
        """

    def update(
        self, number: int, *, title: str | None = None, body: str | None = None, close: bool = False
    ) -> None:
        """Change what is given, in one request."""

    def comments(self, number: int) -> list[str]:
        """The bodies of all comments, those on lines included."""

    def comment(self, number: int, body: str) -> None:
        """Add a comment.

        Raises:
            AnswerLost: it may have been added.
        """

    def label(self, number: int, labels: Sequence[str]) -> None:
        """Add labels to a pull request that has just been created."""

    def unlabel(self, number: int, label: str) -> None:
        """Take a label away."""

    def head_ref(self, number: int) -> str:
        """The full ref under which git finds the last commit of a pull request, also one from a fork."""

    def changed_lines(self, number: int) -> dict[str, set[int]]:
        """The lines that can be commented on: by path, those that the hunks of its difference show."""

    def suggest(self, request: PullRequest, suggestion: Suggestion) -> None:
        """Comment on lines with a replacement.

        Raises:
            AnswerLost: it may have been added.
        """


_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


def lines_of_patch(patch: str) -> set[int]:
    """The lines of the new file that the hunks of a patch show, changed and unchanged ones."""
    found: set[int] = set()
    for start, count in _HUNK.findall(patch):
        found.update(range(int(start), int(start) + int(count or 1)))
    return found
