"""Suggestions on somebody's pull request: a comment with a button, on lines that it changes.

The plan has to be for the pull request's last commit. A fix is suggested whole or not at all: only if every
line that it replaces can be commented on. What has been suggested once is not suggested again, and what
cannot be shown exactly as it would be written (invisible characters) is not suggested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from gradfix.bot.errors import DONE, PARTLY, AnswerLost, BotError, RateLimited, Unreachable, UsageError
from gradfix.bot.forges.protocol import Forge, PullRequest, Suggestion
from gradfix.bot.git import Git, Remote
from gradfix.bot.markdown import code, prose
from gradfix.bot.plan import PlanFile
from gradfix.bot.proof import outcome_of, standins
from gradfix.bot.publish import Done
from gradfix.bot.replay import Base, Difference, ReplayedRewrite, until
from gradfix.bot.secret import Token
from gradfix.core.codemod import Severity
from gradfix.pipeline.results import Outcome
from gradfix.project.source import split_lines
from gradfix.system.printable import visible

_REVIEWED = "refs/gradfix/reviewed"
_MARK = re.compile(r"<!-- gradfix:suggested ([0-9a-f]{16})/(\d+) -->")


@dataclass(frozen=True, slots=True)
class LineReplacement:
    """Lines that a fix replaces, counted from 1 with both ends, and what is to stand there."""

    start: int
    end: int
    replacement: str


def review(
    plan: PlanFile, number: int, forge: Forge, git: Git, token: Token, *, dry_run: bool = False
) -> list[Done]:
    """Comment on pull request ``number`` with the rewrites of ``plan``.

    Raises:
        UsageError: the plan is for another commit.
        BotError: nothing at all could be done.
    """
    request = forge.pull_request(number)
    remote = Remote(forge.clone_url(), token, forge.user)
    commit = git.fetch_ref(remote, forge.head_ref(number), _REVIEWED)
    if commit != plan.base:
        raise UsageError(
            f"the plan is for commit {plan.base}, and the last commit of the pull request is {commit}"
        )
    # What the maintainers have configured holds, not what the pull request makes of it.
    trusted = git.fetch(remote, request.base)
    settings = Base(git, trusted)
    base = Base(git, commit, unsafe_fixes=plan.unsafe_fixes, settings_of=settings)
    changed = forge.changed_lines(number)
    said = {match[0] for comment in forge.comments(number) for match in _MARK.finditer(comment)}
    return list(_Reviewer(forge, request, base, changed, said, dry_run).run(plan))


@dataclass
class _Reviewer:
    forge: Forge
    request: PullRequest
    base: Base
    changed: dict[str, set[int]]
    said: set[str]
    dry_run: bool

    def run(self, plan: PlanFile) -> Iterator[Done]:
        """Suggest what can be suggested."""
        for change in plan.changes:
            replayed = self.base.replay(change)
            if isinstance(replayed, Difference):
                yield Done(change.path, "refused", replayed.reason, code=PARTLY)
                continue
            kept = until(replayed, (), unverified=self.base.bot.unverified)
            if kept is None:
                yield Done(change.path, "not proposed", "it could not be verified by running the code")
                continue
            # Later steps are for lines that the first has made: they come when it has been accepted.
            try:
                yield self._suggest(change.path, kept.steps[0])
            except RateLimited as error:
                yield Done(change.path, "failed", str(error), code=error.exit_code)
                return
            except BotError as error:
                yield Done(change.path, "failed", str(error), code=error.exit_code)

    def _suggest(self, path: str, step: ReplayedRewrite) -> Done:
        places = places_of(step.before.file_text, step.after.file_text)
        lines = self.changed.get(path, set())
        if not all(set(range(place.start, place.end + 1)) <= lines for place in places):
            return Done(path, "not suggested", "it concerns lines that the pull request does not change")
        if any(visible(place.replacement) != place.replacement for place in places):
            return Done(path, "not suggested", "it holds characters that cannot be shown")
        posted = 0
        for index, place in enumerate(places):
            mark = f"<!-- gradfix:suggested {step.key.digest}/{index} -->"
            if mark in self.said:
                continue
            posted += 1
            if not self.dry_run:
                body = f"{_words(step, index, len(places))}\n\n{mark}"
                self._post(Suggestion(path, place.start, place.end, body, place.replacement), mark)
        what = "suggested" if posted else "unchanged"
        return Done(
            path, f"would be {what}" if self.dry_run and posted else what, url=self.request.url, code=DONE
        )

    def _post(self, suggestion: Suggestion, mark: str) -> None:
        lost = Unreachable("")
        for _ in range(2):
            try:
                self.forge.suggest(self.request, suggestion)
                return
            except AnswerLost as error:
                lost = Unreachable(str(error))
                if any(mark in comment for comment in self.forge.comments(self.request.number)):
                    return
        raise lost


def places_of(before: str, after: str) -> list[LineReplacement]:
    """What a comment would have to replace so that ``before`` becomes ``after``.

    What is only inserted replaces the line above it (the first line: the one below), by itself and more.
    """
    old, new = split_lines(before), split_lines(after)
    places = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        replacement: Sequence[str] = new[j1:j2]
        if i1 == i2 and i1 > 0:
            i1, replacement = i1 - 1, (old[i1 - 1], *replacement)
        elif i1 == i2:
            i2, replacement = i2 + 1, (*replacement, old[i2])
        places.append(LineReplacement(i1 + 1, i2, "\n".join(replacement)))
    return places


def _words(step: ReplayedRewrite, index: int, count: int) -> str:
    finding, fix = step.attempt.finding, step.attempt.fix
    part = f" (part {index + 1} of {count}: they belong together)" if count > 1 else ""
    outcome = outcome_of(step.rewrite)
    how = " by running both versions" if step.rewrite.outcome is Outcome.PROVED else ""
    described = "; ".join(prose(one, 200) for one in standins(step.rewrite))
    proved = f"{outcome[:1].upper()}{outcome[1:]}{how}{f' ({described})' if described else ''}."
    return (
        f"{code(finding.code)} ({finding.severity or Severity.ERROR}): {prose(finding.message)}.\n\n"
        f"{prose(fix.message)[:1].upper()}{prose(fix.message)[1:]} ({fix.effect}){part}. {proved}"
    )
