"""The first phase: find, rewrite and prove what there is to propose. It runs code of the repository."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gradfix import pipeline, source
from gradfix.bot import config, git
from gradfix.bot.config import BotConfig
from gradfix.bot.errors import UsageError
from gradfix.bot.plan import Change, PlanFile, Rewrite
from gradfix.codemod import Effect
from gradfix.patch import unified_diff
from gradfix.pipeline import Options, Refusal, Wishes
from gradfix.results import Attempt, FileReport, Outcome, Repaired
from gradfix.source import Problem, Source


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, and what is to be said about it."""

    plan: PlanFile
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    """What was left out, and why."""


def make(paths: Sequence[str], wishes: Wishes) -> Made:
    """The plan for ``paths`` of the git checkout around them, as it is at the commit that is checked out.

    Raises:
        UsageError: there is no such checkout, it has changes that are not committed, or something asked for
            or configured makes no sense.
    """
    where = list(paths) or ["."]
    first = os.path.realpath(where[0])
    checkout = git.checkout_of(first if os.path.isdir(first) else os.path.dirname(first))
    commit = git.head_of(checkout)
    if changed := git.uncommitted(checkout):
        raise UsageError(f"{changed[0]} has changes that are not committed, and a plan is about a commit")
    files = git.files_of(checkout, commit)
    options = pipeline.prepare([checkout.root], wishes, where)
    if isinstance(options, Refusal):
        raise UsageError(options.message)
    options, notes = _within_the_repository(options)
    settings = files.get("pyproject.toml")
    bot = config.read(git.content_of(checkout, settings.blob) if settings else None)
    return _Maker(Path(checkout.root), commit, files, options, bot, notes).make(where)


def _within_the_repository(options: Options) -> tuple[Options, list[str]]:
    """The options without what the configuration lets runs have of the machine: a pull request is public."""
    asked = options.settings.verify
    if not (asked.readable or asked.env):
        return options, []
    settings = replace(options.settings, verify=replace(asked, readable=(), env=()))
    note = (
        f"{options.settings.file}: readable and env of tool.gradfix.verify are not for the bot, and left out"
    )
    return replace(options, settings=settings), [note]


class _Maker:
    def __init__(
        self,
        root: Path,
        commit: str,
        files: dict[str, git.Entry],
        options: Options,
        bot: BotConfig,
        notes: list[str],
    ) -> None:
        self._root = root
        self._commit = commit
        self._files = files
        self._options = options
        self._bot = bot
        self._notes = notes
        self._problems: list[Problem] = []

    def make(self, where: Sequence[str]) -> Made:
        report = pipeline.check(where, self._options)
        self._problems += [*report.problems, *(problem for file in report.files for problem in file.problems)]
        fixable = [
            file for file in report.files if any(self._codemods(file)) and self._is_committed(file.path)
        ]
        changes = [change for group in self._groups(fixable) for change in self._changes(*group)]
        plan = PlanFile(self._commit, self._bot.group, self._options.unsafe_fixes, tuple(changes))
        return Made(plan, tuple(dict.fromkeys(self._problems)), tuple(dict.fromkeys(self._notes)))

    def _codemods(self, file: FileReport) -> Iterator[str]:
        """The codemods that have a fix to offer which may be applied."""
        for reported in file.findings:
            effects = {fix.effect for fix in reported.finding.fixes}
            if effects and (self._options.unsafe_fixes or effects != {Effect.CHANGES}):
                yield reported.finding.code

    def _groups(self, files: Sequence[FileReport]) -> Iterator[tuple[str | None, list[str], Options]]:
        """For each run of the pipeline: the pull request (``None``: one for each file), paths and options."""
        if self._bot.group == "codemod":
            for name in sorted({name for file in files for name in self._codemods(file)}):
                paths = [file.path for file in files if name in self._codemods(file)]
                yield name, paths, replace(self._options, selected=frozenset({name}))
        else:
            whole = "all" if self._bot.group == "all" else None
            yield whole, [file.path for file in files], self._options

    def _changes(self, group: str | None, paths: list[str], options: Options) -> Iterator[Change]:
        planned = pipeline.plan(paths, options) if paths else None
        for file in planned.files if planned else ():
            self._problems += file.problems
            path = self._relative(file.path)
            for attempt in file.attempts:
                self._notes += attempt.evidence.passed_over if attempt.evidence is not None else ()
                if not attempt.applied:
                    self._notes.append(f"{path}: {attempt.finding.code}: refuted, left out: {attempt.reason}")
            rewrites = tuple(_rewrites(file, path, options))
            if rewrites:
                blob = git.blob_id(file.before, self._commit)
                yield Change(group or path, path, blob, rewrites)

    def _is_committed(self, shown: str) -> bool:
        """Whether the file is a regular one of the commit, and as it is there, byte for byte."""
        path = self._relative(shown)
        entry = self._files.get(path)
        if entry is None or entry.mode not in git.REGULAR or not git.is_safe(path):
            self._notes.append(f"{path}: left out: it is not a regular file of the commit")
            return False
        data = source.load(shown)
        if isinstance(data, Problem) or git.blob_id(data, self._commit) != entry.blob:
            self._notes.append(f"{path}: left out: git stores other bytes than those in the checkout")
            return False
        return True

    def _relative(self, shown: str) -> str:
        return os.path.relpath(os.path.realpath(shown), os.path.realpath(self._root)).replace(os.sep, "/")


def _rewrites(file: Repaired, path: str, options: Options) -> Iterable[Rewrite]:
    parsed = source.parse(file.path, file.before, options.settings.max_file_size)
    if isinstance(parsed, Source):
        for attempt in file.applied:
            yield _rewrite(attempt, parsed, path)


def _rewrite(attempt: Attempt, parsed: Source, path: str) -> Rewrite:
    before, after = parsed.encode(attempt.before), parsed.encode(attempt.after)
    # The pipeline has written and read back both.
    assert isinstance(before, bytes) and isinstance(after, bytes)
    return Rewrite(
        codemod=attempt.finding.code,
        diff=unified_diff(path, before, after).decode("utf-8", "surrogateescape"),
        outcome=attempt.outcome if attempt.evidence is not None else Outcome.UNVERIFIED,
        reason=attempt.reason,
        certificate=None if attempt.evidence is None else attempt.evidence.to_json(),
    )
