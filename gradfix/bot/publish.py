"""The second phase: make the pull requests what the plan and the base branch say they should be.

Nothing is remembered between runs. Every run looks at what is there (branches, commits, pull requests),
works out what should be there, and does what is missing, in an order in which it can be stopped anywhere:
a branch is pushed before its pull request is opened, a pull request is closed before its branch goes. What
was interrupted, the next run takes up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from gradfix.bot import body, merging, state
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
from gradfix.bot.existing import Existing
from gradfix.bot.forges.protocol import Draft, Forge, PullRequest
from gradfix.bot.git import Git, Remote
from gradfix.bot.plan import Change, PlanFile
from gradfix.bot.replay import Base, Difference, Rewritten, until
from gradfix.bot.scope import ScopeOf
from gradfix.bot.secret import Token
from gradfix.bot.standing import standing

SETTLED = "the base branch does not have its mistakes any more"

LOOKS = (0.0, 1.0, 3.0)
"""Seconds before each look for something that may or may not have been created."""

_URL = re.compile(r"https://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]+)?(/[A-Za-z0-9._~-]+)+")
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
    gradfix_url: str | None = None
    """The address of gradfix's own repository, for who wants to check a pull request."""
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
        self._gradfix_url = None if wanted.gradfix_url is None else checked_url(wanted.gradfix_url)
        self._branch = checked_branch(wanted.base or forge.default_branch())
        source = Remote(forge.clone_url(), token, forge.user)
        self._target = replace(source, url=forge.push_url()) if wanted.fork else source
        tip = git.fetch(source, self._branch, whole=wanted.fork)
        if wanted.fork:
            git.fetch_heads(self._target)
        self._base = Base(git, tip, unsafe_fixes=wanted.unsafe_fixes)
        self._settings = self._base.bot
        if plan.group != self._settings.group:
            raise UsageError(
                f"the plan is grouped by {plan.group}, and the base branch says {self._settings.group}: "
                "make it again from the base branch"
            )
        self._scope = ScopeOf(plan, self._base)
        self._existing = Existing(forge, git, source, self._branch, tip)
        self._left: list[str] = []
        """Our branches that are in no open pull request, and for which the plan has nothing that holds."""

    def run(self) -> Iterator[Done]:
        """Everything, one branch after the other; it ends early where the forge asks to come back later."""
        self._existing.look({state.branch_of(name) for name in self._plan.groups})
        made = {(one.group, one.path): self._base.replay(one) for one in self._plan.changes}
        self._base.moved = self._moves([file for file in made.values() if isinstance(file, Rewritten)])
        groups = {self._branch_for(name): changes for name, changes in self._plan.groups.items()}
        replayed = {
            branch: [self._under_all_names(made[one.group, one.path]) for one in changes]
            for branch, changes in groups.items()
        }
        whole = {branch: _whole(files) for branch, files in replayed.items()}
        opened, heads = self._existing.open, self._existing.heads
        tasks: list[tuple[str, Callable[[], Done | None]]] = []
        for branch in opened:
            if whole.get(branch) is None:
                tasks.append((branch, lambda branch=branch: self._settle(branch)))  # type: ignore[misc]
        # Those that are open first, then those that are wholly proved; new ones may have to wait for room.
        order = sorted(groups, key=lambda branch: (branch not in opened, _doubts(groups[branch]), branch))
        self._left = [branch for branch in heads if branch not in opened and whole.get(branch) is None]
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

    def _moves(self, files: Sequence[Rewritten]) -> dict[str, str]:
        """Files of open pull requests, and of those that a person has said no to, that have another name on
        the base branch now: what was where, and is where."""
        branches = [state.branch_of(name) for name in self._plan.groups]
        steps = [step for file in files for step in file.steps]
        held = [(request, _keys_of(request)) for request in self._existing.open.values()]
        held += [
            # What was refused may have to be fetched: only where it could be what is planned now.
            (request, tuple(key for key in keys if any(step.key_at(key.path) == key for step in steps)))
            for request, keys in self._existing.refused(branches)
        ]
        moved: dict[str, str] = {}
        for request, keys in held:
            missing = {key.path for key in keys} - self._base.entries.keys() - moved.keys()
            commit = self._existing.commit_of(request) if missing else None
            if commit is not None:
                renamed = self._git.renames(commit, self._base.commit)
                moved |= {path: renamed[path] for path in missing & renamed.keys()}
        return moved

    def _former(self, path: str) -> list[str]:
        """The names that a file of the base branch has had before."""
        return [old for old, new in self._base.moved.items() if new == path]

    def _under_all_names(self, file: Rewritten | Difference) -> Rewritten | Difference:
        return file.known_as(self._former(file.path)) if isinstance(file, Rewritten) else file

    def _branch_for(self, group: str) -> str:
        """The branch for a group. That for a file keeps its name when the file does not."""
        for branch in map(state.branch_of, self._former(group) if self._plan.group == "file" else ()):
            if self._existing.history(branch):
                return branch
        return state.branch_of(group)

    # ------------------------------------------------------------------ proposing

    def _propose(self, branch: str, files: Sequence[Rewritten]) -> Done:
        """Open the pull request for a group, or bring the one that is open up to date."""
        current = self._existing.open.get(branch)
        if current is None and self._is_unreadable_no(self._existing.history(branch)):
            return Done(
                branch, "declined", "a person has closed it, and removed the marker that says what it held"
            )
        declined = self._declined(branch)
        stops = declined | self._proposed_elsewhere(branch)
        unverified = self._settings.unverified
        chosen = [part for file in files if (part := until(file, stops, unverified=unverified))]
        if not chosen:
            keys = _all_keys(files)
            if keys & declined:
                return Done(branch, "declined", "a person has closed it")
            if keys & stops:
                return Done(branch, "not proposed", "another open pull request holds it")
            return Done(branch, "not proposed", "it could not be verified by running the code")
        url = current.url if current else ""
        if current is not None and current.base != self._branch:
            return Done(branch, "left alone", "a person has sent it to another branch", url)
        head = self._existing.heads.get(branch)
        asked = current is not None and REBUILD in current.labels
        if head is not None and not merging.is_ours(self._git, head) and not asked:
            settled = self._settle(branch) if current is not None else None
            return settled or Done(branch, "left alone", "a person has pushed to it", url)
        if current is not None and (kept := self._kept(branch, files, chosen, stops)):
            return Done(branch, "left alone", kept, url)
        if current is None and len(self._existing.open) >= self._settings.max_open:
            return Done(branch, "waiting", f"{_requests(len(self._existing.open))} open already")
        return self._bring(branch, head, current, chosen, asked)

    def _bring(
        self, branch: str, head: str | None, current: PullRequest | None, chosen: list[Rewritten], asked: bool
    ) -> Done:
        """Make a branch and its pull request what they are to be."""
        # One that is in no open pull request may have been merged already, and what it did taken back.
        if head is not None and current is not None and not asked and self._does(head, chosen):
            commit, (below,) = head, self._git.parents(head)
            words = body.words(chosen, below, self._plan, self._settings, self._gradfix_url)
        else:
            words = body.words(chosen, self._base.commit, self._plan, self._settings, self._gradfix_url)
            contents = {file.path: file.after for file in chosen}
            commit = self._git.build(self._base.commit, contents, words.message, self._settings.author)
        if self._wanted.dry_run:
            return self._would(branch, head, commit, current, words)
        return self._carry_out(branch, head, commit, current, words, asked)

    def _does(self, head: str, chosen: Sequence[Rewritten]) -> bool:
        """Whether a branch can stay as it is: merged, it gives what one that is built anew would give."""
        if self._settings.rebase == "always":
            return False
        keys = {step.key for file in chosen for step in file.steps}
        held = set(state.keys_in(self._git.raw_commit(head)))
        wanted = [(file.path, file.after) for file in chosen]
        return keys == held and merging.gives(self._git, head, self._base.commit, wanted)

    def _kept(
        self, branch: str, files: Sequence[Rewritten], chosen: Sequence[Rewritten], stops: set[state.Key]
    ) -> str:
        """Why an open pull request stays as it is; empty if nothing is in the way of what the plan says."""
        head = self._existing.heads.get(branch)
        if head is None or not merging.is_ours(self._git, head):
            return ""
        held = set(state.keys_in(self._git.raw_commit(head)))
        dropped = held - _all_keys(chosen) - stops
        return self._scope.why_kept(dropped, _all_keys(files), standing(self._base, dropped, head))

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
        if current is not None and asked and pushed and head is not None:
            if not merging.is_ours(self._git, head):
                # Said before it is done: afterwards nobody could say any more where the branch was.
                self._comment_once(current, body.rebuilt_comment(head), f"gradfix:rebuilt {head}")
        if pushed:
            self._git.push(self._target, branch, commit, head)
        if current is None:
            current = self._create(branch, words)
            self._existing.open[branch] = current
            self._edit(current, words)
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
            self._existing.open[branch] = PullRequest(
                0, "open", "", "", branch, self._branch, (), "", True, commit
            )
            return Done(branch, "would create", words=words)
        same = head == commit and not _edits(current, words)
        return Done(branch, "unchanged" if same else "would update", url=current.url, words=words)

    def _is_unreadable_no(self, history: Sequence[PullRequest]) -> bool:
        """Whether a person has said no and it is not known to what."""
        closed = [request for request in history if request.state == "closed"]
        return not self._wanted.again and any(state.parsed(request.body)[0] is None for request in closed)

    def _declined(self, branch: str) -> set[state.Key]:
        """The keys that a person has said no to: here, or on a branch of another grouping."""
        if self._wanted.again:
            return set()
        return {key for _, keys in self._existing.refused([branch, *self._left]) for key in keys}

    def _proposed_elsewhere(self, branch: str) -> set[state.Key]:
        """The keys in open pull requests from other branches: they were made with another grouping."""
        others = (request for name, request in self._existing.open.items() if name != branch)
        return {key for request in others for key in _keys_of(request)}

    def _create(self, branch: str, words: Words) -> PullRequest:
        """Open the pull request, once: if it is not known whether that worked, look before trying again."""
        settings = self._settings
        text = words.body
        if settings.labels and not self._forge.opens_with_labels:
            text = state.unlabelled(text)
        draft = Draft(words.title, text, branch, self._branch, settings.labels, settings.draft)
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

    def _edit(self, current: PullRequest, words: Words) -> bool:
        """Bring title and body up to date, where no person has edited them; set the labels that are due."""
        edits = _edits(current, words)
        marker, text = state.parsed(current.body)
        if marker is not None and marker.unlabelled:
            if self._label(current):
                edits.setdefault("body", f"{text}\n\n{replace(marker, unlabelled=False).written()}\n")
            elif "body" in edits:
                edits["body"] = state.unlabelled(edits["body"])
        if edits:
            self._forge.update(current.number, title=edits.get("title"), body=edits.get("body"))
        return bool(edits)

    def _label(self, request: PullRequest) -> bool:
        """Set the labels of a new pull request; whether that is done, or will never be."""
        missing = [label for label in self._settings.labels if label not in request.labels]
        try:
            # Labels are an ornament: not every token may set them.
            with suppress(NotAllowed, Missing, Refused):
                if missing:
                    self._forge.label(request.number, missing)
        except (AnswerLost, Unreachable):
            return False
        return True

    # ------------------------------------------------------------------ closing, and tidying up

    def _settle(self, branch: str) -> Done | None:
        """Close a pull request whose mistakes the base branch does not have any more.

        A person may have merged the base branch into it.
        """
        request, head = self._existing.open[branch], self._existing.heads.get(branch)
        if request.base != self._branch or head is None:
            return None
        # Whether it is worth to look at what people have done there, the marker tells.
        if not merging.is_ours(self._git, head) and standing(self._base, _keys_of(request)).there:
            return None
        own = self._existing.own_commit(branch)
        keys = state.keys_in(self._git.raw_commit(own)) if own is not None else ()
        if not keys or not all(map(self._scope.covers, keys)):
            return None
        stand = standing(self._base, keys, own)
        if stand.unknown:
            why = f"at the moment this cannot be analysed: {next(iter(stand.unknown.values()))}"
            return Done(branch, "left alone", why, request.url)
        if stand.there:
            return None
        if self._wanted.dry_run:
            return Done(branch, "would close", SETTLED, request.url)
        self._comment_once(request, body.settled_comment(self._base.commit), body.SETTLED)
        # One request: a pull request that is closed, and not marked as settled, was closed by a person.
        self._forge.update(request.number, body=state.settled(request.body), close=True)
        del self._existing.open[branch]
        self._git.push(self._target, branch, None, head)
        return Done(branch, "closed", SETTLED, request.url)

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
        own = self._existing.own_commit(branch)
        if own is None:
            return None
        history = self._existing.history(branch)
        if any(request.state == "open" for request in history):
            return None
        if history:
            marker = state.parsed(history[0].body)[0]
            if not (history[0].state == "merged" or (marker is not None and marker.settled)):
                return None
        else:
            keys = state.keys_in(self._git.raw_commit(own))
            if not all(map(self._scope.covers, keys)) or standing(self._base, keys, own):
                return None
        if self._wanted.dry_run:
            return Done(branch, "would delete", "nothing needs this branch any more")
        self._git.push(self._target, branch, None, self._existing.heads[branch])
        return Done(branch, "deleted", "nothing needs this branch any more")


def _keys_of(request: PullRequest) -> tuple[state.Key, ...]:
    """What a pull request holds, as its marker says."""
    marker = state.parsed(request.body)[0]
    return marker.keys if marker is not None else ()


def _all_keys(files: Iterable[Rewritten]) -> set[state.Key]:
    """The keys of all rewrites, also those that they had before."""
    return {key for file in files for step in file.steps for key in step.keys}


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


def checked_url(url: str) -> str:
    """``url`` if pip can install from it as a git repository, and if a shell and Markdown take it as it is.

    Raises:
        UsageError: it is no such address.
    """
    if not _URL.fullmatch(url):
        raise UsageError(f"{url[:100]!r} is no address of a git repository: https://HOST/OWNER/NAME")
    return url


def checked_branch(name: str) -> str:
    """``name`` if it can be a branch, and nothing else, in a refspec.

    Raises:
        UsageError: it cannot.
    """
    if not _BRANCH.fullmatch(name) or name.startswith(state.PREFIX):
        raise UsageError(f"{name[:100]!r} is no branch that pull requests can go to")
    return name
