"""The whole story, top to bottom: paths -> files -> findings -> rewrites -> evidence.

``prepare`` turns what the user asked for into :class:`Options`, ``check`` finds, ``plan`` decides on
the rewrites and has each one proved, ``write`` and ``patch`` are the two things to do with a plan.
What happened is told in values; the exit code is one of their properties.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from gradfix import catalog, project, source
from gradfix.codemod import Effect, Finding, Fix
from gradfix.source import Problem, Source

if TYPE_CHECKING:
    from gradfix.verify.runner import Evidence


# ---------------------------------------------------------------------------- what is asked for


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says; ``None`` and ``False`` leave it to the configuration."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    unsafe_fixes: bool = False
    python: str | None = None
    verify: bool = True
    codemods: tuple[str, ...] = ()
    """Further folders of codemods."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to do, in full; made by :func:`prepare`."""

    catalog: catalog.Catalog
    selected: frozenset[str]
    """The names of the codemods that report; a fix is held against all of them."""
    settings: project.Settings
    unsafe_fixes: bool = False
    python: str | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was done at all."""

    message: str


def prepare(paths: Sequence[str], wishes: Wishes) -> Options | Refusal:
    """The options for ``paths``: the configuration, overridden by what is asked for."""
    settings = project.settings_for(paths)
    if isinstance(settings, Problem):
        return Refusal(f"{settings.path}: {settings.message}")
    codemods = catalog.load(wishes.codemods)
    select = settings.select if wishes.select is None else wishes.select
    ignore = settings.ignore if wishes.ignore is None else wishes.ignore
    selected = codemods.select(select, ignore)
    if isinstance(selected, str):
        return Refusal(selected)
    python = wishes.python or settings.python
    if python is not None and shutil.which(python) is None:
        return Refusal(f"there is no Python interpreter {python!r}")
    return Options(
        catalog=codemods,
        selected=selected,
        settings=settings,
        unsafe_fixes=wishes.unsafe_fixes or settings.unsafe_fixes,
        python=python,
        verify=wishes.verify,
    )


# ---------------------------------------------------------------------------- what comes out


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding, and the fix that would be applied to it."""

    finding: Finding
    fix: Fix | None = None
    """The first fix that resolves the finding and leads to no new one."""
    fixed_text: str | None = None
    """The file with that fix alone."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What ``check`` has to say of one file."""

    path: str
    text: str = ""
    findings: tuple[Reported, ...] = ()
    problems: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()
    """Where the analysis had to give up, and why; not an error."""


class Outcome(StrEnum):
    """What became of a fix when both versions were run."""

    PROVED = "proved"
    REFUTED = "refuted"
    """The fix does not keep its promise on this program: it is not applied."""
    UNVERIFIED = "unverified"
    """The program could not be run, or was not to be."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A fix that passed the model, with the text before and after it, and what running them showed."""

    finding: Finding
    fix: Fix
    before: str
    after: str
    outcome: Outcome
    reason: str = ""
    """Why it is refuted, or could not be run; empty if it was not to be run."""
    evidence: Evidence | None = None
    """``None`` if nothing was to be run."""

    @property
    def applied(self) -> bool:
        """Whether the fix is part of the result."""
        return self.outcome is not Outcome.REFUTED


@dataclass(frozen=True, slots=True)
class Repaired:
    """One file of a plan: the bytes that it holds and those that it is to hold."""

    path: str
    before: bytes
    after: bytes
    text: str
    """The text after; the findings that are left refer to it."""
    attempts: tuple[Attempt, ...] = ()
    """Those that are applied, each on the text that the one before it left; then those that were refuted."""
    remaining: tuple[Reported, ...] = ()
    problems: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()
    written: bool = False

    @property
    def applied(self) -> tuple[Attempt, ...]:
        """The attempts that are part of the result."""
        return tuple(attempt for attempt in self.attempts if attempt.applied)


_File = TypeVar("_File", FileReport, Repaired)


@dataclass(frozen=True, slots=True)
class _Run(Generic[_File]):
    files: tuple[_File, ...]
    """Those of which there is anything to say, in order of path."""
    problems: tuple[Problem, ...]
    """Those that belong to none of the files."""
    checked: int
    """How many Python files were looked at."""
    empty: tuple[str, ...]
    """The arguments under which there is no Python file."""

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """The problems of the run and of every file."""
        return self.problems + tuple(problem for file in self.files for problem in file.problems)


@dataclass(frozen=True, slots=True)
class Report(_Run[FileReport]):
    """What ``check`` found."""

    @property
    def findings(self) -> tuple[Reported, ...]:
        """The findings of all files."""
        return tuple(reported for file in self.files for reported in file.findings)

    @property
    def exit_code(self) -> int:
        """0: nothing to report, 1: findings, 2: some of the work could not be done."""
        return 2 if self.all_problems else int(bool(self.findings))


@dataclass(frozen=True, slots=True)
class Plan(_Run[Repaired]):
    """Everything that ``apply`` is about to write, or has written."""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts in all files."""
        return tuple(attempt for file in self.files for attempt in file.attempts)

    @property
    def remaining(self) -> tuple[Reported, ...]:
        """The findings that are left when the plan is written."""
        return tuple(reported for file in self.files for reported in file.remaining)

    @property
    def was_run(self) -> bool:
        """Whether both versions of any rewrite could be run."""
        return any(attempt.outcome is not Outcome.UNVERIFIED for attempt in self.attempts)

    @property
    def exit_code(self) -> int:
        """As of :class:`Report`, for the files as they are: a plan that is not written leaves findings."""
        if self.all_problems:
            return 2
        return int(any(file.remaining or (file.applied and not file.written) for file in self.files))


# ---------------------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class _Loaded:
    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class _Loading:
    """The files that can matter, and what went wrong on the way to them."""

    files: tuple[_Loaded, ...]
    problems: tuple[Problem, ...]
    checked: int
    empty: tuple[str, ...]


def _load(paths: Sequence[str], options: Options) -> _Loading:
    listing = project.find_files(paths, options.settings)
    problems = [*options.catalog.problems, *listing.problems]
    loaded: list[_Loaded] = []
    for listed in listing.files:
        data = source.load(listed.path)
        if isinstance(data, Problem):
            problems.append(data)
        elif listed.named or source.can_matter(data):
            # A file that is named is parsed in any case: its user wants to know if it is broken.
            loaded.append(_Loaded(listed.path, data))
    return _Loading(tuple(loaded), tuple(problems), len(listing.files), listing.empty)


_WORTH_PROCESSES = 16
"""So many files take longer to analyse than processes take to start."""

_job: Callable[[int], FileReport]
"""What the worker processes do. They inherit it by fork: nothing but numbers and reports is sent."""


def _for_each(look: Callable[[_Loaded], FileReport], files: Sequence[_Loaded]) -> list[FileReport]:
    """``look`` at every file, on all processors where that is worth it; in the order of ``files``."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(files) < _WORTH_PROCESSES or processors < 2 or not hasattr(os, "fork"):
        return [look(file) for file in files]
    global _job
    _job = lambda number: look(files[number])  # noqa: E731
    reports: dict[int, FileReport] = {}
    _in_processes(range(len(files)), processors, reports)
    # A process that died took its neighbours' work along. Each lost file gets a process of its own,
    # so that only the one which kills it is left without a report.
    for number in range(len(files)):
        if number not in reports:
            _in_processes([number], 1, reports)
    died = "gradfix crashed on this file, or ran out of memory"
    return [
        reports.get(number) or FileReport(file.path, problems=(Problem(file.path, died, "internal-error"),))
        for number, file in enumerate(files)
    ]


def _in_processes(numbers: Sequence[int], processes: int, reports: dict[int, FileReport]) -> None:
    """Do the job for ``numbers`` in child processes; those whose process died get no report."""
    import multiprocessing
    import signal
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("fork"),
        # Interrupted children end at once and quietly; the parent has the last word.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_DFL),
    )
    with pool:
        futures = {number: pool.submit(_do, number) for number in numbers}
        for number, future in futures.items():
            try:
                reports[number] = future.result()
            except BrokenProcessPool:
                continue


def _do(number: int) -> FileReport:
    return _job(number)


# ---------------------------------------------------------------------------- findings


def check(paths: Sequence[str], options: Options) -> Report:
    """The findings in ``paths``, each with the fix that ``apply`` would choose for it."""
    loading = _load(paths, options)
    reports = _for_each(lambda file: _look(file, options, with_fixes=True), loading.files)
    told = tuple(report for report in reports if report.findings or report.problems or report.messages)
    return Report(told, loading.problems, loading.checked, loading.empty)


def _look(file: _Loaded, options: Options, *, with_fixes: bool) -> FileReport:
    """The findings in one file, with or without the choice of a fix for each."""
    parsed = source.parse(file.path, file.data, options.settings.max_file_size)
    if isinstance(parsed, Problem):
        return FileReport(file.path, problems=(parsed,))
    if not source.can_matter(file.data):
        return FileReport(file.path)
    analysis = _analyse(parsed, options, options.selected)
    findings = _reported(analysis, options)
    reported = tuple(Reported(finding) for finding in findings)
    problems = analysis.problems
    if with_fixes and any(finding.fixes for finding in findings):
        try:
            reported = tuple(_with_fixes(analysis, findings, options))
        except Exception as error:
            problems += (_failure(file.path, "the choice of a fix", error),)
    return FileReport(file.path, parsed.text, reported, problems, analysis.messages)


@dataclass(frozen=True, slots=True)
class _Analysis:
    """What the codemods say of one version of a file."""

    source: Source
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()


def _analyse(parsed: Source, options: Options, names: Collection[str] | None = None) -> _Analysis:
    """Run the model and the codemods on ``parsed``; what fails is a problem of this file alone."""
    from gradfix.autograd import analyze

    try:
        program = analyze(parsed.tree, parsed.text, Path(parsed.path))
    except Exception as error:
        return _Analysis(parsed, (), (_failure(parsed.path, "the analysis", error),))
    findings: list[Finding] = []
    problems: list[Problem] = []
    for codemod in options.catalog.codemods:
        if names is not None and codemod.name not in names:
            continue
        try:
            findings.extend(codemod.find(program))
        except Exception as error:
            problems.append(_failure(parsed.path, f"the codemod {codemod.name}", error))
    findings.sort(key=lambda finding: (finding.span, finding.code))
    return _Analysis(parsed, tuple(findings), tuple(problems), tuple(program.messages))


def _failure(path: str, what: str, error: Exception) -> Problem:
    if isinstance(error, RecursionError):
        return Problem(path, f"is nested too deeply for {what}", "internal-error")
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" ({os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno})" if place else ""
    return Problem(path, f"{what} failed: {type(error).__name__}: {error}{where}", "internal-error")


def _reported(analysis: _Analysis, options: Options) -> tuple[Finding, ...]:
    """The findings of the selected codemods that no comment silences."""
    return tuple(
        finding
        for finding in analysis.findings
        if finding.code in options.selected and not analysis.source.suppressed(finding.code, finding.span)
    )


# ---------------------------------------------------------------------------- choosing a fix


def _with_fixes(analysis: _Analysis, findings: Iterable[Finding], options: Options) -> Iterator[Reported]:
    whole = options.selected == options.catalog.names
    everything = analysis if whole else _analyse(analysis.source, options)
    for finding in findings:
        # Best first, but those that may be applied before those that may not.
        fixes = sorted(finding.fixes, key=lambda fix: not _allowed(fix, options))
        yield _with_fix(everything, finding, fixes, options)


def _with_fix(analysis: _Analysis, finding: Finding, fixes: Iterable[Fix], options: Options) -> Reported:
    """``finding`` with the first of ``fixes`` that resolves it."""
    for fix in fixes:
        after = _resolved(analysis, finding, fix, options)
        if after is not None:
            return Reported(finding, fix, after.source.text)
    return Reported(finding)


def _allowed(fix: Fix, options: Options) -> bool:
    return options.unsafe_fixes or fix.effect is not Effect.CHANGES


def _resolved(analysis: _Analysis, finding: Finding, fix: Fix, options: Options) -> _Analysis | None:
    """The file after ``fix``, if the model says that ``finding`` is gone and nothing new has come.

    All codemods are asked, selected or not: a fix may not trade one mistake for another.
    """
    from gradfix.rewrite import apply_fixes

    before = analysis.source
    rewrite = apply_fixes(before.text, [fix.edits])
    if rewrite.failed or rewrite.deferred or rewrite.text == before.text:
        return None
    parsed = before.with_text(rewrite.text)
    if isinstance(parsed, Problem):
        return None
    after = _analyse(parsed, options)
    failed_anew = any(problem not in analysis.problems for problem in after.problems)
    return after if not failed_anew and _cleaner(analysis, finding, after) else None


def _cleaner(before: _Analysis, fixed: Finding, after: _Analysis) -> bool:
    """Whether the findings of ``after`` are some of those of ``before`` without ``fixed``.

    A finding is recognised by its code and the text of its line, or, where the fix has changed that
    line, by the place of the line.
    """
    moved_to = _line_map(before.source.lines, after.source.lines)
    pool = [finding for finding in before.findings if finding != fixed]
    changed: list[Finding] = []
    for finding in after.findings:
        known = next((old for old in pool if _identity(old, before) == _identity(finding, after)), None)
        if known is None:
            changed.append(finding)
        else:
            pool.remove(known)
    for finding in changed:
        known = next(
            (
                old
                for old in pool
                if old.code == finding.code and moved_to.get(old.span.line) == finding.span.line
            ),
            None,
        )
        if known is None:
            return False
        pool.remove(known)
    return True


def _identity(finding: Finding, analysis: _Analysis) -> tuple[str, str]:
    return finding.code, analysis.source.lines[finding.span.line - 1].strip()


def _line_map(before: Sequence[str], after: Sequence[str]) -> dict[int, int]:
    """The new number of each line that was kept, or replaced by one other."""
    from difflib import SequenceMatcher

    numbers: dict[int, int] = {}
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, to_start, to_end in matcher.get_opcodes():
        if tag in ("equal", "replace") and end - start == to_end - to_start:
            numbers.update(zip(range(start + 1, end + 1), range(to_start + 1, to_end + 1)))
    return numbers


# ---------------------------------------------------------------------------- rewriting and proving


def plan(paths: Sequence[str], options: Options) -> Plan:
    """What is to be written for ``paths``: for every file the fixes that hold. Nothing is written here."""
    loading = _load(paths, options)
    reports = _for_each(lambda file: _look(file, options, with_fixes=False), loading.files)
    files = tuple(
        _plan_file(file, report, options)
        for file, report in zip(loading.files, reports)
        if report.findings or report.problems or report.messages
    )
    return Plan(files, loading.problems, loading.checked, loading.empty)


def _plan_file(file: _Loaded, report: FileReport, options: Options) -> Repaired:
    parsed = source.parse(file.path, file.data, options.settings.max_file_size) if report.findings else None
    unchanged = Repaired(file.path, file.data, file.data, report.text, remaining=report.findings)
    try:
        repaired = repair(parsed, options) if isinstance(parsed, Source) else unchanged
    except Exception as error:
        repaired = replace(unchanged, problems=(_failure(file.path, "the rewriting", error),))
    return replace(repaired, problems=report.problems + repaired.problems, messages=report.messages)


def repair(parsed: Source, options: Options) -> Repaired:
    """Apply one fix after the other to ``parsed``, each proved before the next is chosen.

    A fix is chosen on the text that those before it have left, so fixes never conflict, and each
    leaves fewer findings than there were, so it ends. One that is refuted is left out; it is tried
    again when others have been applied.
    """
    analysis = _analyse(parsed, options)
    if parsed.encode(parsed.text) != parsed.data:
        lossy = Problem(parsed.path, f"cannot be rewritten: {parsed.encoding} does not give its bytes back")
        left = tuple(Reported(finding) for finding in _reported(analysis, options))
        return Repaired(parsed.path, parsed.data, parsed.data, parsed.text, (), left, (lossy,))
    applied: list[Attempt] = []
    refuted: dict[_FixKey, Attempt] = {}
    tried: set[_FixKey] = set()
    progress = False
    while True:
        candidate = next((found for found in _candidates(analysis, options) if found.key not in tried), None)
        if candidate is None and not progress:
            break
        if candidate is None:
            # What did not do before may do for the text as it is now: of two mistakes that raise,
            # only the fix for the one that raises first can be proved while both are there.
            tried, progress = set(), False
            continue
        tried.add(candidate.key)
        after = _resolved(analysis, candidate.finding, candidate.fix, options)
        if after is None:
            continue
        attempt = _prove(analysis.source, candidate, after.source.text, options)
        if attempt.applied:
            applied.append(attempt)
            refuted.pop(candidate.key, None)
            analysis, progress = after, True
        else:
            refuted[candidate.key] = attempt
    # A fix that is left was refuted, did not do, or needs leave: only the last are still on offer.
    remaining = tuple(
        _with_fix(analysis, finding, [fix for fix in finding.fixes if not _allowed(fix, options)], options)
        for finding in _reported(analysis, options)
    )
    attempts = (*applied, *refuted.values())
    result = analysis.source
    return Repaired(parsed.path, parsed.data, result.data, result.text, attempts, remaining)


_FixKey = tuple[str, str, int, str]


@dataclass(frozen=True, slots=True)
class _Candidate:
    key: _FixKey
    """A name for the fix that outlives changes elsewhere in the file."""
    finding: Finding
    fix: Fix


def _candidates(analysis: _Analysis, options: Options) -> Iterator[_Candidate]:
    """Every fix that may be applied, in order."""
    seen: dict[tuple[str, str], int] = {}
    for finding in _reported(analysis, options):
        identity = _identity(finding, analysis)
        ordinal = seen[identity] = seen.get(identity, -1) + 1
        for fix in finding.fixes:
            if _allowed(fix, options):
                yield _Candidate((*identity, ordinal, fix.message), finding, fix)


def _prove(before: Source, candidate: _Candidate, after: str, options: Options) -> Attempt:
    """Run the file before and after, and hold what happens against the claim of the fix."""
    attempt = Attempt(candidate.finding, candidate.fix, before.text, after, Outcome.UNVERIFIED)
    if not options.verify:
        return attempt
    from gradfix.verify.runner import verify_rewrite

    fix = candidate.fix
    try:
        evidence = verify_rewrite(
            Path(before.path), before.text, after, fix.claim, fix.effect, python=options.python
        )
    except Exception as error:
        return replace(attempt, reason=_failure(before.path, "verification", error).message)
    outcomes = {"proved": Outcome.PROVED, "refuted": Outcome.REFUTED}
    outcome = outcomes.get(evidence.outcome, Outcome.UNVERIFIED)
    return replace(attempt, outcome=outcome, reason=evidence.reason, evidence=evidence)


# ---------------------------------------------------------------------------- what to do with a plan


def write(planned: Plan) -> Plan:
    """Write every file of the plan; one that cannot be written is a problem and keeps its bytes."""
    return replace(planned, files=tuple(_write(file) for file in planned.files))


def _write(file: Repaired) -> Repaired:
    if not file.applied:
        return file
    problem = project.replace(file.path, file.before, file.after)
    if problem is not None:
        return replace(file, problems=(*file.problems, problem))
    return replace(file, written=True)


@dataclass(frozen=True, slots=True)
class Patch:
    """A plan as a patch that ``git apply`` takes; it gives byte for byte what ``write`` writes."""

    data: bytes
    folder: str
    """The folder from which its paths count: the current one if that holds all the files."""


def patch(planned: Plan) -> Patch | Problem:
    """The patch for every file of the plan; a problem if one of them cannot be told as a patch."""
    from gradfix import patch as patches

    files = {os.path.realpath(file.path): file for file in planned.files if file.applied}
    here = os.path.realpath(os.curdir)
    folder = here if all(path.startswith(os.path.join(here, "")) for path in files) else _folder_of(files)
    contents = {
        os.path.relpath(path, folder).replace(os.sep, "/"): (file.before, file.after)
        for path, file in sorted(files.items())
    }
    data = patches.combine(patches.unified_diff(path, *texts) for path, texts in contents.items())
    wrong = patches.check(data, contents)
    return Problem(folder, wrong, "internal-error") if wrong else Patch(data, folder)


def _folder_of(files: Iterable[str]) -> str:
    return os.path.commonpath([os.path.dirname(file) for file in files])
