"""The second phase: make the pull requests what the plan and the base branch say they should be.

Nothing is remembered between runs. Every run looks at what is there (branches, commits, pull requests),
works out what should be there, and does what is missing, in an order in which it can be stopped anywhere:
a branch is pushed before its pull request is opened, a pull request is closed before its branch goes. What
was interrupted, the next run takes up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from gradfix.bot import body, state
from gradfix.bot.body import Words
from gradfix.bot.config import REBUILD
from gradfix.bot.errors import (
    DONE,
    PARTLY,
    USAGE,
    AnswerLost,
    BotError,
    Missing,
    NotAllowed,
    RateLimited,
    Refused,
    Unreachable,
    UsageError,
)
from gradfix.bot.forges.protocol import Draft, Forge, PullRequest
from gradfix.bot.git import Git, Remote
from gradfix.bot.plan import Change, PlanFile
from gradfix.bot.replay import Base, Difference, Rewritten, until
from gradfix.bot.secret import Token

LOOKS = (0.0, 1.0, 3.0)
"""Seconds before each look for something that may or may not have been created."""

_BRANCH = re.compile(r"(?!-)(?!.*(\.\.|//|@\{|\.lock(/|$)|\.$|/\.|/$))[^\x00-\x20\x7f~^:?*\[\\]+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of ``publish``."""

    base: str | None = None
    """The branch that the pull requests go to; ``None``: the repository's default branch."""
    fork: bool = False
    """Push to the bot's own fork."""
    again: bool = False
    """Propose also what a person has said no to."""
    unsafe_fixes: bool = False
    dry_run: bool = False
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one branch."""

    branch: str
    what: str
    """In words: ``created``, ``unchanged``, ``left alone``..."""
    why: str = ""
    url: str = ""
    code: int = DONE
    words: Words | None = None
    """In a dry run: what the pull request would say."""


def publish(plan: PlanFile, forge: Forge, git: Git, token: Token | None, wanted: Wanted) -> list[Done]:
    """Make the pull requests; what became of each is in the answer.

    Without a token, what is public can be read, so a dry run needs none: it changes nothing.

    Raises:
        UsageError: something is to be changed without a token, or in a fork that belongs to its owner.
        BotError: nothing at all could be done.
    """
    if token is None and not wanted.dry_run:
        raise UsageError("without a token nothing can be changed: only a dry run needs none")
    if token is None and wanted.fork:
        raise UsageError("whose fork it is, the token says: --fork needs one in a dry run too")
    return list(_Publisher(plan, forge, git, token, wanted).run())


class _Publisher:
    def __init__(self, plan: PlanFile, forge: Forge, git: Git, token: Token | None, wanted: Wanted) -> None:
        self._plan = plan
        self._forge = forge
        self._git = git
        self._wanted = wanted
        self._branch = checked_branch(wanted.base or forge.default_branch())
        source = Remote(forge.clone_url(), token, forge.user)
        self._target = replace(source, url=forge.push_url()) if wanted.fork else source
        tip = git.fetch(source, self._branch, whole=wanted.fork)
        if wanted.fork:
            git.fetch_heads(self._target)
        self._heads = git.heads()
        self._base = Base(git, tip, unsafe_fixes=wanted.unsafe_fixes)
        self._settings = self._base.bot
        if plan.group != self._settings.group:
            raise UsageError(
                f"the plan is grouped by {plan.group}, and the base branch says {self._settings.group}: "
                "make it anew from the base branch"
            )
        self._open: dict[str, PullRequest] = {}
        self._histories: dict[str, list[PullRequest]] = {}
        self._left: list[str] = []
        """Our branches that are in no open pull request, and not in the plan."""

    def run(self) -> Iterator[Done]:
        """Everything, one branch after the other; it ends early where the forge asks to come back later."""
        self._open = {
            request.branch: request
            for request in reversed(self._forge.pull_requests())
            if request.ours and request.branch.startswith(state.PREFIX)
        }
        groups = {state.branch_of(name): changes for name, changes in self._plan.groups.items()}
        replayed = {
            branch: [self._base.replay(change) for change in changes] for branch, changes in groups.items()
        }
        whole = {branch: _whole(files) for branch, files in replayed.items()}
        tasks: list[tuple[str, Callable[[], Done | None]]] = []
        for branch in self._open:
            if whole.get(branch) is None:
                tasks.append((branch, lambda branch=branch: self._settle(branch)))  # type: ignore[misc]
        self._left = [branch for branch in self._heads if branch not in self._open and branch not in groups]
        # Those that are open first, then those that are wholly proved; new ones may have to wait for room.
        order = sorted(groups, key=lambda branch: (branch not in self._open, _doubts(groups[branch]), branch))
        for branch in order:
            files = whole[branch]
            if files is not None:
                tasks.append((branch, lambda branch=branch, files=files: self._propose(branch, files)))  # type: ignore[misc]
        for branch in self._left:
            tasks.append((branch, lambda branch=branch: self._tidy(branch)))  # type: ignore[misc]
        for branch, parts in replayed.items():
            for part in parts:
                if isinstance(part, Difference):
                    yield Done(branch, "refused", f"{part.path}: {part.reason}", code=PARTLY)
        for branch, task in tasks:
            try:
                done = task()
            except BotError as error:
                # What was there a moment ago and is missing now is no fault of how the bot was called.
                code = PARTLY if error.exit_code == USAGE else error.exit_code
                yield Done(branch, "failed", str(error), code=code)
                if isinstance(error, RateLimited):
                    return
            else:
                if done is not None:
                    yield done

    # ------------------------------------------------------------------ proposing

    def _propose(self, branch: str, files: Sequence[Rewritten]) -> Done:
        """Open the pull request for a group, or bring the one that is open up to date."""
        history = self._history(branch)
        current = next((request for request in history if request.state == "open"), None)
        if current is None and self._is_unreadable_no(history):
            return Done(
                branch, "declined", "a person has closed it, and removed the marker that says what it held"
            )
        declined = self._declined(history)
        stops = declined | self._proposed_elsewhere(branch)
        unverified = self._settings.unverified
        chosen = [part for file in files if (part := until(file, stops, unverified=unverified))]
        if not chosen:
            keys = {step.key for file in files for step in file.steps}
            if keys & declined:
                return Done(branch, "declined", "a person has closed it")
            if keys & stops:
                return Done(branch, "not proposed", "another open pull request holds it")
            return Done(branch, "not proposed", "it could not be verified by running the code")
        if current is not None and current.base != self._branch:
            return Done(branch, "left alone", "a person has sent it to another branch", current.url)
        head = self._heads.get(branch)
        asked = current is not None and REBUILD in current.labels
        if head is not None and not self._is_ours(head) and not asked:
            return Done(branch, "left alone", "a person has pushed to it", current.url if current else "")
        if current is None and len(self._open) >= self._settings.max_open:
            return Done(branch, "waiting", f"{_requests(len(self._open))} open already")
        words = body.words(chosen, self._base.commit, self._plan.base, self._settings)
        contents = {file.path: file.after for file in chosen}
        commit = self._git.build(self._base.commit, contents, words.message, self._settings.author)
        if self._wanted.dry_run:
            return self._would(branch, head, commit, current, words)
        return self._carry_out(branch, head, commit, current, words, asked)

    def _carry_out(
        self,
        branch: str,
        head: str | None,
        commit: str,
        current: PullRequest | None,
        words: Words,
        asked: bool,
    ) -> Done:
        pushed = head != commit
        if current is not None and asked and pushed and head is not None and not self._is_ours(head):
            # Said before it is done: afterwards nobody could say any more where the branch was.
            self._comment_once(current, body.rebuilt_comment(head), f"gradfix:rebuilt {head}")
        if pushed:
            self._git.push(self._target, branch, commit, head)
        if current is None:
            current = self._create(branch, words)
            self._open[branch] = current
            self._label(current)
            return Done(branch, "created", url=current.url)
        edited = self._edit(current, words)
        if asked:
            with suppress(Missing):  # Somebody has taken it away just now.
                self._forge.unlabel(current.number, REBUILD)
        return Done(branch, "updated" if pushed or edited else "unchanged", url=current.url)

    def _would(
        self, branch: str, head: str | None, commit: str, current: PullRequest | None, words: Words
    ) -> Done:
        if current is None:
            # So that the limit holds in a dry run too.
            self._open[branch] = PullRequest(0, "open", "", "", branch, self._branch, (), "", True, commit)
            return Done(branch, "would create", words=words)
        same = head == commit and not _edits(current, words)
        return Done(branch, "unchanged" if same else "would update", url=current.url, words=words)

    def _history(self, branch: str) -> list[PullRequest]:
        """Every pull request from a branch of ours, the newest first."""
        if branch not in self._histories:
            found = self._forge.pull_requests(branch)
            self._histories[branch] = [request for request in found if request.ours]
        return self._histories[branch]

    def _is_unreadable_no(self, history: Sequence[PullRequest]) -> bool:
        """Whether a person has said no and it is not known to what."""
        closed = [request for request in history if request.state == "closed"]
        return not self._wanted.again and any(state.parsed(request.body)[0] is None for request in closed)

    def _declined(self, history: Sequence[PullRequest]) -> set[state.Key]:
        """The keys that a person has said no to: here, or on a branch of another grouping."""
        if self._wanted.again:
            return set()
        requests = [*history, *(request for branch in self._left for request in self._history(branch))]
        markers = [state.parsed(request.body)[0] for request in requests if request.state == "closed"]
        return {key for marker in markers if marker and not marker.settled for key in marker.keys}

    def _proposed_elsewhere(self, branch: str) -> set[state.Key]:
        """The keys in open pull requests from other branches: they were made with another grouping."""
        others = [request for name, request in self._open.items() if name != branch]
        markers = [state.parsed(request.body)[0] for request in others]
        return {key for marker in markers if marker for key in marker.keys}

    def _is_ours(self, head: str) -> bool:
        """Whether a commit is exactly as the bot has made it."""
        return state.is_sealed(self._git.raw_commit(head))

    def _create(self, branch: str, words: Words) -> PullRequest:
        """Open the pull request, once: if it is not known whether that worked, look before trying again."""
        settings = self._settings
        draft = Draft(words.title, words.body, branch, self._branch, settings.labels, settings.draft)
        for attempt in range(2):
            try:
                return self._forge.create(draft)
            except (AnswerLost, Refused) as error:
                found = self._look_for(branch)
                if found is not None:
                    return found
                if isinstance(error, Refused) or attempt:
                    raise
        raise AssertionError

    def _look_for(self, branch: str) -> PullRequest | None:
        for wait in LOOKS:
            self._wanted.sleep(wait)
            for request in self._forge.pull_requests(branch):
                if request.ours and request.state == "open":
                    return request
        return None

    def _label(self, request: PullRequest) -> None:
        missing = [label for label in self._settings.labels if label not in request.labels]
        if missing:
            # Labels are an ornament: not every token may set them.
            with suppress(NotAllowed, Missing, Refused, AnswerLost, Unreachable):
                self._forge.label(request.number, missing)

    def _edit(self, current: PullRequest, words: Words) -> bool:
        """Bring title and body up to date, where no person has edited them."""
        edits = _edits(current, words)
        if edits:
            self._forge.update(current.number, title=edits.get("title"), body=edits.get("body"))
        return bool(edits)

    # ------------------------------------------------------------------ closing, and tidying up

    def _settle(self, branch: str) -> Done | None:
        """Close a pull request whose mistakes the base branch does not have any more."""
        request, head = self._open[branch], self._heads.get(branch)
        if request.base != self._branch or head is None or not self._is_ours(head):
            return None
        keys = state.keys_in(self._git.raw_commit(head))
        if not keys or self._base.remaining(keys):
            return None
        if self._wanted.dry_run:
            return Done(
                branch, "would close", "the base branch does not have its mistakes any more", request.url
            )
        self._comment_once(request, body.settled_comment(self._base.commit), body.SETTLED)
        # One request: a pull request that is closed, and not marked as settled, was closed by a person.
        self._forge.update(request.number, body=state.settled(request.body), close=True)
        del self._open[branch]
        self._git.push(self._target, branch, None, head)
        return Done(branch, "closed", "the base branch does not have its mistakes any more", request.url)

    def _comment_once(self, request: PullRequest, text: str, mark: str) -> None:
        """Add a comment that holds ``mark``, unless one is there."""
        lost = Unreachable("")
        for _ in range(2):
            if any(mark in comment for comment in self._forge.comments(request.number)):
                return
            try:
                self._forge.comment(request.number, text)
                return
            except AnswerLost as error:
                lost = Unreachable(str(error))
        raise lost

    def _tidy(self, branch: str) -> Done | None:
        """Delete a branch of ours that an interrupted run, or a merge, has left behind."""
        head = self._heads[branch]
        if not self._is_ours(head):
            return None
        history = self._history(branch)
        if any(request.state == "open" for request in history):
            return None
        if history:
            marker = state.parsed(history[0].body)[0]
            if not (history[0].state == "merged" or (marker is not None and marker.settled)):
                return None
        elif self._base.remaining(state.keys_in(self._git.raw_commit(head))):
            return None
        if self._wanted.dry_run:
            return Done(branch, "would delete", "nothing needs this branch any more")
        self._git.push(self._target, branch, None, head)
        return Done(branch, "deleted", "nothing needs this branch any more")


def _whole(files: Sequence[Rewritten | Difference]) -> list[Rewritten] | None:
    """The files of a pull request; ``None`` if any is refused: what was planned together goes together."""
    found = [file for file in files if isinstance(file, Rewritten)]
    return found if len(found) == len(files) else None


def _doubts(changes: Sequence[Change]) -> int:
    """How many rewrites of a pull request are not proved."""
    return sum(rewrite.outcome != "proved" for change in changes for rewrite in change.rewrites)


def _edits(current: PullRequest, words: Words) -> dict[str, str]:
    """What is to be changed in a pull request; what a person has edited stays."""
    marker, text = state.parsed(current.body)
    if marker is None:
        return {}
    edits = {}
    if current.title != words.title and state.digest_of(current.title) == marker.title:
        edits["title"] = words.title
    if state.digest_of(text) == marker.body:
        if (marker.facts, set(marker.keys)) != (words.facts, set(words.keys)):
            edits["body"] = words.body
    elif set(marker.keys) != set(words.keys):
        edits["body"] = f"{text}\n\n{replace(marker, keys=words.keys).written()}\n"
    return edits


def _requests(count: int) -> str:
    return "1 pull request is" if count == 1 else f"{count} pull requests are"


def checked_branch(name: str) -> str:
    """``name`` if it can be a branch, and nothing else, in a refspec.

    Raises:
        UsageError: it cannot.
    """
    if not _BRANCH.fullmatch(name) or name.startswith(state.PREFIX):
        raise UsageError(f"{name[:100]!r} is no branch that pull requests can go to")
    return name
