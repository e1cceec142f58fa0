"""The plan's rewrites, made again from the base branch without running anything: or refused.

The Python files of the base branch are written to a folder of our own, so that the model finds the modules
that a file imports. They are parsed, never imported.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from gradfix.bot import config, git
from gradfix.bot.config import BotConfig
from gradfix.bot.errors import UsageError
from gradfix.bot.git import Git
from gradfix.bot.plan import Change, Rewrite
from gradfix.bot.state import Key
from gradfix.core.codemod import Severity
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options
from gradfix.pipeline.results import Attempt, Outcome
from gradfix.project import configuration, source
from gradfix.project.configuration import ANALYSED
from gradfix.project.source import Problem, Source
from gradfix.rewriting.patch import unified_diff
from gradfix.rules import catalog

CONFIGURATION = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class ReplayedRewrite:
    """A rewrite of the plan as it was made again."""

    rewrite: Rewrite
    """What the plan says of it; of this, only the outcome and the certificate are used."""
    attempt: Attempt
    key: Key
    before: Source
    after: Source
    former: frozenset[Key] = frozenset()
    """Its keys while the file had another name."""

    @property
    def keys(self) -> frozenset[Key]:
        """The key, and those by which it was known before."""
        return self.former | {self.key}

    def key_at(self, path: str) -> Key:
        """The key that it would have if the file had this name."""
        return Key.of(self.attempt.finding, self.before, path)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file of a pull request, with all its steps."""

    path: str
    steps: tuple[ReplayedRewrite, ...]

    @property
    def before(self) -> bytes:
        """As it is on the base branch."""
        return self.steps[0].before.data

    def known_as(self, paths: Collection[str]) -> Rewritten:
        """The same, for a file that has had these names before."""
        if not paths:
            return self
        steps = (replace(step, former=frozenset(map(step.key_at, paths))) for step in self.steps)
        return replace(self, steps=tuple(steps))

    @property
    def after(self) -> bytes:
        """As it is to be."""
        return self.steps[-1].after.data


@dataclass(frozen=True, slots=True)
class Difference:
    """Why a change of the plan is refused."""

    path: str
    reason: str


class Base:
    """The base branch at one commit, for analysis."""

    def __init__(
        self, repository: Git, commit: str, *, unsafe_fixes: bool = False, settings_of: Base | None = None
    ) -> None:
        """Write what is to be analysed to a folder of ``repository``.

        Args:
            repository: It has ``commit``, and is open as long as this is used.
            commit: What is to be analysed.
            unsafe_fixes: Allow fixes that change what is learned, whatever the configuration says.
            settings_of: Whose configuration holds; its own if ``None``.

        Raises:
            UsageError: the configuration on the base branch is wrong.
        """
        self.repository = repository
        self.commit = commit
        self.moved: dict[str, str] = {}
        """Files that had another name when something was proposed for them: what was where, and is where."""
        self._folder = Path(os.path.realpath(repository.folder)) / f"base-{commit}"
        # What lies above is none of the project's: the search for its root ends here.
        (self._folder / ".git").mkdir(parents=True, exist_ok=True)
        entries = repository.tree(commit)
        wanted = [
            path for path in entries if path.endswith(ANALYSED) and entries[path].size <= source.MAX_BYTES
        ]
        wanted += [CONFIGURATION] if CONFIGURATION in entries else []
        self.entries = git.export(repository, commit, self._folder, wanted)
        if settings_of is None:
            self.bot: BotConfig = config.read(self._read(CONFIGURATION))
            self.options = self._static(unsafe_fixes)
        else:
            self.bot = settings_of.bot
            unsafe = unsafe_fixes or settings_of.options.unsafe_fixes
            self.options = replace(settings_of.options, unsafe_fixes=unsafe)

    def _static(self, unsafe_fixes: bool) -> Options:
        settings = configuration.settings_for([str(self._folder)])
        if isinstance(settings, Problem):
            raise UsageError(f"on the base branch: {settings.message}")
        known = catalog.load()
        selected = known.select(settings.select, settings.ignore)
        if isinstance(selected, str):
            raise UsageError(f"on the base branch: {selected}")
        unsafe = unsafe_fixes or settings.unsafe_fixes
        # How bad a mistake has to be was decided when the plan was made; whether it is still there is not.
        least = Severity.INFO
        return Options(known, selected, settings, unsafe_fixes=unsafe, min_severity=least, verify=False)

    def _read(self, path: str) -> bytes | None:
        """A file of the base branch, if it is one that was exported."""
        data = source.load(self.place(path))
        return None if isinstance(data, Problem) else data

    def place(self, path: str) -> str:
        """Where the file of the base branch was written to."""
        return os.path.join(self._folder, path)

    def replay(self, change: Change) -> Rewritten | Difference:
        """The change as gradfix itself makes it; a difference if that is not what the plan says."""
        entry = self.entries.get(change.path)
        if entry is None:
            return Difference(change.path, "the file is no longer there")
        if entry.mode not in git.REGULAR:
            return Difference(change.path, "it is not a regular file")
        if entry.blob != change.blob:
            return Difference(change.path, "the file has changed since the plan was made")
        parsed = self.parse(change.path)
        if isinstance(parsed, Problem):
            return Difference(change.path, f"the file cannot be analysed: {parsed.message}")
        steps: list[ReplayedRewrite] = []
        for rewrite in change.rewrites:
            step = self._step(rewrite, parsed, change)
            if isinstance(step, Difference):
                return step
            steps.append(step)
            parsed = step.after
        return Rewritten(change.path, tuple(steps))

    def parse(self, path: str) -> Source | Problem:
        """The regular file at ``path``, byte for byte as git has it; a problem if it cannot be analysed."""
        entry = self.entries[path]
        data = self._read(path)
        if data is None:
            return Problem(path, "is too large" if entry.size > source.MAX_BYTES else "cannot be read")
        if git.blob_id(data, self.commit) != entry.blob:
            return Problem(path, "another file has the same name but for capital letters")
        parsed = source.parse(self.place(path), data, self.options.settings.max_file_size)
        if isinstance(parsed, Source) and parsed.encode(parsed.text) != data:
            return Problem(path, f"{parsed.encoding} does not give its bytes back")
        return parsed

    def _step(self, rewrite: Rewrite, parsed: Source, change: Change) -> ReplayedRewrite | Difference:
        if rewrite.codemod not in self.options.selected:
            return Difference(change.path, f"the base branch does not select {rewrite.codemod}")
        selected = replace(self.options, selected=frozenset({rewrite.codemod}))
        for attempt, after in driver.offers(parsed, selected):
            diff = unified_diff(change.path, parsed.data, after.data)
            if diff.decode("utf-8", "surrogateescape") == rewrite.diff:
                key = Key.of(attempt.finding, parsed, change.path)
                reported = attempt._replace(outcome=rewrite.outcome, reason=rewrite.reason)
                return ReplayedRewrite(rewrite, reported, key, parsed, after)
        return Difference(change.path, f"gradfix itself does not come to this rewrite ({rewrite.codemod})")


def until(rewritten: Rewritten, stops: Collection[Key], *, unverified: bool) -> Rewritten | None:
    """The steps before the first that is not to be proposed: each is proved on what those before it left.

    Args:
        rewritten: All steps.
        stops: Keys that are not to be proposed: a person has said no, or they are proposed elsewhere.
        unverified: Whether steps that could not be verified are proposed.
    """
    steps: list[ReplayedRewrite] = []
    for step in rewritten.steps:
        proved = step.rewrite.outcome is Outcome.PROVED
        if not step.keys.isdisjoint(stops) or not (proved or unverified):
            break
        steps.append(step)
    return Rewritten(rewritten.path, tuple(steps)) if steps else None
