"""The first phase: find, rewrite and prove what there is to propose. It runs code of the repository."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from gradfix.bot import config, git
from gradfix.bot.config import BotConfig
from gradfix.bot.errors import UsageError
from gradfix.bot.plan import Change, Command, PlanFile, Rewrite, Scope
from gradfix.bot.proof import outcome_of
from gradfix.pipeline import driver, proving
from gradfix.pipeline.choosing import is_allowed
from gradfix.pipeline.options import Options, Refusal, RequestedOptions
from gradfix.pipeline.results import Attempt, FilePlan, FileReport, Outcome
from gradfix.project import source
from gradfix.project.source import Problem, Source
from gradfix.rewriting.patch import unified_diff


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, and what is to be said about it."""

    plan: PlanFile
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    """What was left out, and why."""


def make(
    paths: Sequence[str], requested: RequestedOptions, tell: Callable[[str], None] = lambda line: None
) -> Made:
    """The plan for ``paths`` of the git checkout around them, as it is at the commit that is checked out.

    ``tell`` is told what is being done, and what came of it, a line at a time.

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
    options = driver.prepare([checkout.root], requested, where)
    if isinstance(options, Refusal):
        raise UsageError(options.message)
    # One configuration holds for all files: what a pull request is made by is that at the root.
    options, notes = _within_the_repository(replace(options, requested=None))
    settings = files.get("pyproject.toml")
    bot = config.read(git.content_of(checkout, settings.blob) if settings else None)
    return _Maker(Path(checkout.root), commit, files, options, bot, notes, tell).make(where)


def outcomes_of(change: Change) -> str:
    """What became of the rewrites of a file, in a few words: ``2 proved, 1 not verified``."""
    outcomes = [outcome_of(rewrite) for rewrite in change.rewrites]
    if len(outcomes) == 1:
        return outcomes[0]
    return ", ".join(f"{outcomes.count(one)} {one}" for one in dict.fromkeys(outcomes))


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
        files: dict[str, git.TreeEntry],
        options: Options,
        bot: BotConfig,
        notes: list[str],
        tell: Callable[[str], None],
    ) -> None:
        self._root = root
        self._commit = commit
        self._files = files
        self._options = options
        self._bot = bot
        self._notes = notes
        self._tell = tell
        self._failed: list[str] = []
        self._problems: list[Problem] = []

    def make(self, where: Sequence[str]) -> Made:
        report = driver.check(where, self._options)
        self._add(report.problems)
        for file in report.files:
            self._add(file.problems)
            if file.problems or file.messages:
                self._failed.append(self._relative(file.path))
        fixable = [
            file for file in report.files if any(self._codemods(file)) and self._is_committed(file.path)
        ]
        self._options = proving.with_environment([file.path for file in fixable], self._options)
        work = [(group, path, options) for group, paths, options in self._groups(fixable) for path in paths]
        with proving.servers_kept() if self._options.verify and work else nullcontext():
            changes = [
                change
                for number, (group, path, options) in enumerate(work, 1)
                for change in self._changes(f"[{number}/{len(work)}]", group, path, options)
            ]
        found = tuple(self._relative(file.path) for file in report.files if file.findings)
        paths = tuple(dict.fromkeys(map(self._relative, where)))
        scope = Scope(paths, tuple(sorted(self._options.selected)), found, tuple(dict.fromkeys(self._failed)))
        plan = PlanFile(
            self._commit,
            self._bot.group,
            self._options.unsafe_fixes,
            scope,
            tuple(changes),
            self._command(),
        )
        return Made(plan, tuple(dict.fromkeys(self._problems)), tuple(dict.fromkeys(self._notes)))

    def _add(self, problems: Iterable[Problem]) -> None:
        self._problems += problems
        self._failed += [self._relative(problem.path) for problem in problems]

    def _command(self) -> Command:
        """How scripts are run, as far as others can run them so."""
        script = self._options.script
        within = script is not None and git.is_safe(self._relative(script))
        return Command(
            self._relative(script) if script is not None and within else None,
            self._options.module,
            self._options.arguments,
        )

    def _codemods(self, file: FileReport) -> Iterator[str]:
        """The codemods that have a fix to offer which may be applied."""
        for reported in file.findings:
            if any(is_allowed(fix, self._options) for fix in reported.finding.fixes):
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

    def _changes(self, number: str, group: str | None, shown: str, options: Options) -> Iterator[Change]:
        path = self._relative(shown)
        self._tell(f"{number} {path}{f': {group}' if group in options.selected else ''}")
        for file in driver.plan([shown], options).files:
            self._add(file.problems)
            for attempt in file.attempts:
                self._notes += attempt.evidence.passed_over if attempt.evidence is not None else ()
                if not attempt.applied:
                    self._tell(f"{number} {path}: {attempt.fix.message}: refuted: {attempt.reason}")
                    self._notes.append(f"{path}: {attempt.finding.code}: refuted, left out: {attempt.reason}")
            rewrites = tuple(_rewrites(file, path, options))
            for attempt, rewrite in zip(file.applied, rewrites):
                why = f": {rewrite.reason}" if rewrite.reason and rewrite.outcome != "proved" else ""
                self._tell(f"{number} {path}: {attempt.fix.message}: {outcome_of(rewrite)}{why}")
            if rewrites:
                blob = git.blob_id(file.before, self._commit)
                yield Change(group or path, path, blob, rewrites, len(file.remaining) + len(file.hidden))

    def _is_committed(self, shown: str) -> bool:
        """Whether the file is a regular one of the commit, and as it is there, byte for byte."""
        path = self._relative(shown)
        entry = self._files.get(path)
        if entry is None or entry.mode not in git.REGULAR or not git.is_safe(path):
            self._notes.append(f"{path}: left out: it is not a regular file of the commit")
            self._failed.append(path)
            return False
        data = source.load(shown)
        if isinstance(data, Problem) or git.blob_id(data, self._commit) != entry.blob:
            self._notes.append(f"{path}: left out: git stores other bytes than those in the checkout")
            self._failed.append(path)
            return False
        return True

    def _relative(self, shown: str) -> str:
        return os.path.relpath(os.path.realpath(shown), os.path.realpath(self._root)).replace(os.sep, "/")


def _rewrites(file: FilePlan, path: str, options: Options) -> Iterable[Rewrite]:
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
        # As it will be read.
        certificate=None if attempt.evidence is None else json.loads(json.dumps(attempt.evidence.to_json())),
    )
