"""Fixes that somebody is asked about, one after the other, as `git add -p` asks about hunks.

What is accepted is proved at once, and written if that holds, before the next question: so whatever ends the
conversation loses nothing. ``undo`` takes all of it back together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from gradfix.pipeline import ignoring
from gradfix.pipeline.analysis import Analysis, analyse
from gradfix.pipeline.choosing import replaces
from gradfix.pipeline.placing import placed
from gradfix.pipeline.results import Reported
from gradfix.project import configuration
from gradfix.project.source import Problem, Source
from gradfix.system import files, interrupts

if TYPE_CHECKING:
    from gradfix.pipeline.journal import Journal
    from gradfix.pipeline.options import Options
    from gradfix.pipeline.proving import Candidate, FixKey


NO_ROOM = "no line about it has room for a comment"


class Choice(Enum):
    """What is to become of a finding."""

    ACCEPT = auto()
    SKIP = auto()
    IGNORE = auto()
    """A comment is to silence it."""
    QUIT = auto()
    """It is left, and so is all that has not been asked about."""


class Answer(NamedTuple):
    """What somebody has chosen."""

    choice: Choice
    text: str | None = None
    """The file as it is to be, where the fix was edited."""


class Offer(NamedTuple):
    """What somebody is asked about."""

    source: Source
    """The file as it is."""
    reported: Reported
    """The finding, and its fix if one can be accepted."""
    after: Source | None = None
    """The file with the fix."""
    trouble: str = ""
    """Why the last answer would not do."""


class Interactive:
    """A conversation about the findings of all files, and what has been written in its course."""

    def __init__(self, ask: Callable[[Offer], Answer]) -> None:
        self._ask = ask
        self.over = False
        """Whether nothing more is to be asked."""
        self.unkept = ""
        """Why ``undo`` cannot take back what was written; empty if it can."""
        self._originals: dict[str, bytes] = {}
        self._written: dict[str, bytes] = {}
        self._journal: Journal | None = None

    def ask(self, offer: Offer) -> Answer:
        """What is to become of a finding."""
        if self.over:
            return Answer(Choice.SKIP)
        answer = self._ask(offer)
        self.over = answer.choice is Choice.QUIT
        return answer

    def write(self, path: str, before: bytes, after: bytes) -> Problem | None:
        """Write a file, and keep what it held when the conversation began."""
        interrupts.check()
        with interrupts.whole():
            problem = configuration.replace(path, before, after)
            if problem is None:
                self._originals.setdefault(path, before)
                self._written[path] = after
                self._keep()
        interrupts.check()
        return problem

    def _keep(self) -> None:
        """Keep the files as they were, in one journal for all that has been written."""
        from gradfix.pipeline import journal

        changes = [(path, old, self._written[path]) for path, old in self._originals.items()]
        try:
            recorded = journal.record(changes)
        except OSError as error:
            self.unkept = files.describe_error(error, "cannot be kept")
            return
        if self._journal is not None:
            with suppress(OSError):
                journal.keep(self._journal, ())
        self._journal = recorded
        count = len(changes)
        interrupts.say(f"{count} file{'' if count == 1 else 's'} written; `gradfix undo` takes it back")


class Accepted(NamedTuple):
    """A fix that was accepted, as it stands or edited."""

    candidate: Candidate
    after: Analysis


class Silenced(NamedTuple):
    """A finding that a comment silences in a version of the file."""

    after: Analysis


class Conversation:
    """What is asked about one file."""

    def __init__(self, whole: Interactive, path: str) -> None:
        self._whole = whole
        self._path = path
        self._skipped: set[tuple[str, str, int]] = set()
        self._accepted: set[FixKey] = set()
        self.silenced = 0
        """How many findings are silenced by comments."""
        self.written = False
        self.problem: Problem | None = None
        """Why the file could not be written; nothing more is asked about it."""

    @property
    def over(self) -> bool:
        """Whether nothing more is asked about the file."""
        return self._whole.over or self.problem is not None

    def about(
        self, analysis: Analysis, candidate: Candidate, after: Analysis, options: Options
    ) -> Accepted | Silenced | None:
        """What is chosen for a finding with a fix; ``None`` if it is left."""
        key = _named(candidate)
        if key[:3] in self._skipped:
            return None
        if key in self._accepted:  # It is tried again after others were applied.
            return Accepted(candidate, after)
        shown = placed(candidate.finding, candidate.fix, analysis.source.tree)
        offer = Offer(analysis.source, Reported(shown, candidate.fix, after.source.text), after.source)
        while True:
            answer = self._whole.ask(offer)
            if answer.choice is Choice.IGNORE:
                silenced = self._silence(analysis, candidate, options)
                if silenced is not None:
                    return silenced
                if self.over:
                    return None
                offer = offer._replace(trouble=NO_ROOM)
            elif answer.choice is not Choice.ACCEPT:
                self._skipped.add(key[:3])
                return None
            elif answer.text in (None, after.source.text):
                self._accepted.add(key)
                return Accepted(candidate, after)
            else:
                edited = _edited(analysis, candidate, after, str(answer.text), options)
                if isinstance(edited, Accepted):
                    return edited
                offer = offer._replace(trouble=edited)

    def _silence(self, analysis: Analysis, candidate: Candidate, options: Options) -> Silenced | None:
        done = ignoring.ignore(analysis.source, [candidate.finding])
        if done.left or not self.write(analysis.source, done.source):
            return None
        self.silenced += 1
        return Silenced(analyse(done.source, options))

    def about_the_rest(self, now: Source, findings: Sequence[Reported]) -> tuple[Source, list[Reported]]:
        """The file with comments for those of ``findings`` that are to be silenced, and the others."""
        left: list[Reported] = []
        for one in findings:
            after = None if self.over else self._without(now, one)
            if after is None:
                left.append(one)
            else:
                now = after
        return now, left

    def _without(self, now: Source, reported: Reported) -> Source | None:
        """The file with a finding silenced, for which no fix can be accepted, if that is what is chosen."""
        offer = Offer(now, reported)
        while self._whole.ask(offer).choice is Choice.IGNORE:
            done = ignoring.ignore(now, [reported.finding])
            if not done.left and self.write(now, done.source):
                self.silenced += 1
                return done.source
            if self.over:
                break
            offer = offer._replace(trouble=NO_ROOM)
        return None

    def write_fix(self, candidate: Candidate, before: Source, after: Source) -> bool:
        """Write the file with a fix that holds; whether that could be done."""
        self._accepted.discard(_named(candidate))
        return self.write(before, after)

    def write(self, before: Source, after: Source) -> bool:
        """Write a version of the file; whether that could be done."""
        if self.problem is None:
            self.problem = self._whole.write(self._path, before.data, after.data)
            self.written |= self.problem is None
        return self.problem is None


def _named(candidate: Candidate) -> FixKey:
    """The name of a fix, also when a comment has silenced another finding on its line."""
    code, line, number, name = candidate.key
    return code, line.partition("# gradfix:")[0].rstrip(), number, name


def _edited(
    analysis: Analysis, candidate: Candidate, fixed: Analysis, text: str, options: Options
) -> Accepted | str:
    """A fix with other words than gradfix's, or why it is none.

    What the fix promises is what the edited file is held to when it runs: also that every optimizer uses the
    gradients of the losses that it uses in the file with gradfix's own words, which is ``fixed``.
    """
    from gradfix.pipeline.proving import complete

    parsed = analysis.source.with_text(text)
    if isinstance(parsed, Problem):
        return f"what was edited is no Python: {parsed.message}" + (
            f" (line {parsed.line})" * bool(parsed.line)
        )
    if parsed.text == analysis.source.text:
        return "what was edited is the file as it is"
    after = analyse(parsed, options)
    finding, fix = candidate.finding, candidate.fix
    if (why := replaces(analysis, {finding: fix}, after)) is not None:
        return f"what was edited {why}"
    edited = complete(fix, analysis, fixed)._replace(message=f"{fix.message} (edited by hand)")
    return Accepted(candidate._replace(fix=edited), after)
