"""The whole story, top to bottom: paths -> files -> findings -> rewrites -> evidence.

``prepare`` turns what the user asked for into :class:`Options`, ``check`` finds, ``plan`` decides on
the rewrites and has each one proved, ``write`` and ``patch`` are the two things to do with a plan.
What happened is told in values, those of :mod:`gradfix.results`.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradfix import catalog, interrupts, programs, project, source, traces
from gradfix.codemod import (
    Claim,
    Edit,
    Effect,
    Finding,
    Fix,
    Severity,
    Span,
    Unanalysed,
    Way,
    rated,
)
from gradfix.parallel import WORTH_PROCESSES, for_each
from gradfix.placing import placed, spans_of
from gradfix.results import Attempt, FileReport, Judged, Outcome, Patch, Plan, Repaired, Report, Reported
from gradfix.source import Problem, Source
from gradfix.splice import spliced

if TYPE_CHECKING:
    from gradfix.autograd import Program
    from gradfix.certificate import Certificate, Place
    from gradfix.claims import Faults
    from gradfix.verify.command import Command
    from gradfix.verify.interpreter import Interpreter
    from gradfix.verify.runner import Evidence, Limits

# ---------------------------------------------------------------------------- what is asked for


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says; ``None`` and ``False`` leave it to the configuration."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    unsafe_fixes: bool = False
    min_severity: Severity | None = None
    """Findings that are less bad are not reported."""
    way: Way | None = None
    """The way to repair findings that can be repaired in several."""
    compare: bool = False
    """Whether the other ways are proved as well, to compare what they cost."""
    gan_order: str | None = None
    """Rewrite to this order of two adversaries (see :mod:`gradfix.gan_order`), and nothing else."""
    python: str | None = None
    environment: Callable[[Sequence[Path]], str] | None = None
    """Makes the environment that the scripts run in, for all of them, and gives its interpreter."""
    script: str | None = None
    """The script that is run, where the files that are named are modules that it imports."""
    module: str | None = None
    """The same, by the name that ``python -m`` is given."""
    arguments: tuple[str, ...] = ()
    """What the script is called with."""
    verify: bool = True
    unproved: bool = False
    codemods: tuple[str, ...] = ()
    """Further folders of codemods."""
    allow_unsandboxed: bool = False
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """What to do, in full; made by :func:`prepare`."""

    catalog: catalog.Catalog
    selected: frozenset[str]
    """The names of the codemods that report; a fix is held against all of them."""
    settings: project.Settings
    unsafe_fixes: bool = False
    min_severity: Severity = Severity.WARNING
    """Findings that are less bad are not reported; a fix is held against all of them."""
    way: Way | None = None
    """The way to repair findings that can be repaired in several; ``None`` for the default of each."""
    compare: bool = False
    """Whether the other ways are proved as well, to compare what they cost."""
    interpreter: Interpreter | None = None
    """The one that runs the scripts, where one is named."""
    environment: Callable[[Sequence[Path]], str] | None = None
    script: str | None = None
    module: str | None = None
    arguments: tuple[str, ...] = ()
    verify: bool = True
    unproved: bool = False
    """Whether a fix is applied too that running could not prove."""
    allow_unsandboxed: bool = False
    """Verify even where no sandbox is to be had."""
    cached: bool = False
    """Whether what was found in a file is kept for the next time."""


class Refusal(NamedTuple):
    """Why nothing was done at all."""

    message: str


def prepare(
    paths: Sequence[str], wishes: Wishes, scripts: Sequence[str] | None = None, *, configured: bool = True
) -> Options | Refusal:
    """The options for ``paths``: the configuration, if it is ``configured``, overridden by what is asked for.

    ``scripts`` are the files that are run, where the configuration is that of other paths.
    """
    settings = project.settings_for(paths) if configured else project.Settings()
    if isinstance(settings, Problem):
        return Refusal(f"{settings.path}: {settings.message}")
    codemods = catalog.load(wishes.codemods)
    select = settings.select if wishes.select is None else wishes.select
    ignore = settings.ignore if wishes.ignore is None else wishes.ignore
    selected = codemods.select(select, ignore)
    if wishes.gan_order is not None:
        from gradfix import gan_order

        asked_for = gan_order.codemod(gan_order.Order(wishes.gan_order))
        codemods = codemods._replace(codemods=(*codemods.codemods, asked_for))
        selected = frozenset({asked_for.name})
    if isinstance(selected, str):
        asked = codemods.select(wishes.select or (), wishes.ignore or ())
        return Refusal(selected if isinstance(asked, str) else f"{settings.file}: {selected}")
    interpreter = _named_interpreter(wishes, settings)
    if isinstance(interpreter, Refusal):
        return interpreter
    refusal = _unusable_command(paths if scripts is None else scripts, wishes) or _unusable_settings(settings)
    if refusal is not None:
        return refusal
    return Options(
        catalog=codemods,
        selected=selected,
        settings=settings,
        # Who asks for another order asks for another training.
        unsafe_fixes=wishes.unsafe_fixes or settings.unsafe_fixes or wishes.gan_order is not None,
        min_severity=Severity.INFO if wishes.gan_order else wishes.min_severity or settings.min_severity,
        way=wishes.way,
        compare=wishes.compare,
        interpreter=interpreter,
        environment=wishes.environment,
        script=wishes.script,
        module=wishes.module,
        arguments=wishes.arguments,
        verify=wishes.verify,
        unproved=wishes.unproved,
        allow_unsandboxed=wishes.allow_unsandboxed,
        cached=wishes.cached,
    )


def _named_interpreter(wishes: Wishes, settings: project.Settings) -> Interpreter | Refusal | None:
    """The interpreter that the command line names, or else the configuration, if anything is to be run."""
    named = wishes.python or settings.verify.python
    if not named or not (wishes.verify or wishes.python):
        return None
    from gradfix.verify.interpreter import Interpreter, configured_interpreter

    if not wishes.python:
        found = configured_interpreter(named)
        return Refusal(f"{settings.file}: {found}") if isinstance(found, str) else found
    executable = programs.find(named)
    if executable is None:
        return Refusal(f"there is no Python interpreter {named!r}")
    return Interpreter(executable, "--python")


def _unusable_command(paths: Sequence[str], wishes: Wishes) -> Refusal | None:
    """Why the command that is asked for cannot be that of ``paths``."""
    if wishes.script is not None and not os.path.isfile(wishes.script):
        what = "is a folder" if os.path.isdir(wishes.script) else "there is no such script"
        return Refusal(f"{wishes.script}: {what}")
    alone = wishes.script is None and wishes.module is None
    if wishes.arguments and alone and not (len(paths) == 1 and os.path.isfile(paths[0])):
        return Refusal("what stands after -- is for one script: name it, or say which is run with --script")
    if wishes.module is not None:
        from gradfix.verify import command

        try:
            command.of_module(wishes.module, Path.cwd())
        except command.CommandError as error:
            return Refusal(str(error))
    return None


def _unusable_settings(settings: project.Settings) -> Refusal | None:
    """Why what the configuration says of running scripts cannot be followed."""
    if settings.verify == project.Verification():
        return None
    from gradfix.verify import command

    root = _configured_in(settings)
    folder = Path(settings.verify.cwd) if settings.verify.cwd else root
    try:
        if not folder.is_dir():
            raise command.CommandError(f"cwd: there is no folder {folder}")
        _keep_within(root, folder)
        for _, text in settings.verify.command:
            _keep_within(root, command.parse(text, folder).entry)
    except command.CommandError as error:
        return Refusal(f"{settings.file}: tool.gradfix.verify: {error}")
    return None


def module_file(name: str) -> str | None:
    """The file that ``python -m name`` would run from the current folder."""
    from gradfix.verify import command

    try:
        found = command.of_module(name, Path.cwd()).entry
    except command.CommandError:
        return None
    return None if found is None else os.path.relpath(found)


# ---------------------------------------------------------------------------- files


class _Loaded(NamedTuple):
    path: str
    data: bytes


class _Loading(NamedTuple):
    """The files that can matter, and what went wrong on the way to them."""

    files: tuple[_Loaded, ...]
    problems: tuple[Problem, ...]
    checked: int
    empty: tuple[str, ...]


def _load(paths: Sequence[str], options: Options) -> _Loading:
    traces.look_again()
    listing = project.find_files(paths, options.settings)
    problems = [*options.catalog.problems, *listing.problems]
    loaded: list[_Loaded] = []
    for listed in listing.files:
        limit = options.settings.max_file_size
        data = source.load(listed.path, limit)
        if isinstance(data, Problem):
            problems.append(data)
        elif not (listed.named or source.can_matter(data)):
            continue  # A file that is named is parsed in any case: its user wants to know if it is broken.
        elif (problem := source.too_large(listed.path, data, limit)) is not None:
            problems.append(problem)  # It is let go at once: many of them are more than memory holds.
        else:
            loaded.append(_Loaded(listed.path, data))
    return _Loading(tuple(loaded), tuple(problems), len(listing.files), listing.empty)


# ---------------------------------------------------------------------------- findings


def check(paths: Sequence[str], options: Options) -> Report:
    """The findings in ``paths``, each with the fix that ``apply`` would choose for it."""
    loading = _load(paths, options)
    reports = _reports(paths, loading, options, with_fixes=True)
    told = tuple(report for report in reports if _anything(report))
    return Report(told, loading.problems, loading.checked, loading.empty)


def check_text(path: str, data: bytes, options: Options) -> FileReport:
    """The findings in what is to be the content of the file at ``path``, as :func:`check` has them."""
    traces.look_again()
    with traces.on_behalf_of(os.path.abspath(path)):
        return _look(_Loaded(path, data), options, with_fixes=True)


def _anything(report: FileReport) -> bool:
    """Whether there is anything to say of a file."""
    return bool(report.findings or report.problems or report.messages or report.unanalysed)


GARBAGE = 200_000
"""Garbage is looked for where so many objects are left of files, rather than among those of a run."""


def _reports(
    paths: Sequence[str], loading: _Loading, options: Options, *, with_fixes: bool
) -> list[FileReport]:
    """What there is to say of each file, as it is known from another time or as it is found out now."""
    kept = None
    if options.cached and loading.files:
        from gradfix import cache

        kept = cache.open_for(options, project.repository(paths), with_fixes=with_fixes)

    def look(file: _Loaded) -> FileReport:
        with traces.on_behalf_of(os.path.abspath(file.path)):
            report = _look(file, options, with_fixes=with_fixes)
        if kept is not None:
            kept.put(file.path, file.data, report)
        if gc.isenabled() and gc.get_count()[0] > GARBAGE:
            gc.collect(0)
        return report

    known = [kept.get(file.path, file.data) if kept is not None else None for file in loading.files]
    unknown = [file for file, report in zip(loading.files, known) if report is None]
    found = iter(for_each(look, unknown, _lost, weight=lambda file: len(file.data)))
    return [next(found) if report is None else report for report in known]


def _lost(file: _Loaded) -> FileReport:
    died = "gradfix crashed on this file, or ran out of memory"
    return FileReport(file.path, problems=(Problem(file.path, died, "internal-error"),))


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
    unseen = _unanalysed(analysis)
    notes: list[str] = []
    if with_fixes and any(finding.fixes for finding in findings):
        try:
            reported = tuple(filter(_worth_telling, _with_fixes(analysis, findings, options, notes)))
        except Exception as error:
            problems += (_failure(file.path, "the choice of a fix", error),)
    messages = analysis.messages
    if analysis.program is not None:
        messages = analysis.program.messages  # The choice of a fix may have asked for further runs.
    analysis.release()
    return FileReport(file.path, parsed.text, reported, problems, messages, tuple(notes), unseen)


def _unanalysed(analysis: _Analysis) -> tuple[Unanalysed, ...]:
    if analysis.program is None:
        return ()
    from gradfix.autograd.unanalysed import unanalysed

    return unanalysed(analysis.program)


class _Analysis(NamedTuple):
    """What the codemods say of one version of a file."""

    source: Source
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()
    program: Program | None = None

    def release(self) -> None:
        """Let go of the model's runs: nobody asks about this version any more."""
        if self.program is not None:
            self.program.release()


def _analyse(parsed: Source, options: Options, names: Collection[str] | None = None) -> _Analysis:
    """Run the model and the codemods on ``parsed``; what fails is a problem of this file alone."""
    program = _model(parsed)
    if isinstance(program, Problem):
        return _Analysis(parsed, (), (program,))
    return _diagnose(parsed, program, options, names)


def _model(parsed: Source, ways: Collection[tuple[str, str]] | None = None) -> Program | Problem:
    from gradfix.autograd import analyze

    try:
        return analyze(parsed.tree, parsed.text, Path(parsed.path), ways)
    except Exception as error:
        return _failure(parsed.path, "the analysis", error)


def _diagnose(
    parsed: Source, program: Program, options: Options, names: Collection[str] | None = None
) -> _Analysis:
    """Ask the codemods (those of ``names``, or all) about ``program``."""
    findings: list[Finding] = []
    problems: list[Problem] = []
    for codemod in options.catalog.codemods:
        if names is not None and codemod.name not in names:
            continue
        try:
            found = list(codemod.find(program))
            findings += [
                one._replace(advice=one.advice or codemod.by_hand, severity=rated(one, codemod.severity))
                for one in found
            ]
        except Exception as error:
            problems.append(_failure(parsed.path, f"the codemod {codemod.name}", error))
    # What lies in an imported module has no place in this file, unless it can be mended here.
    lent = program.lent()
    told: dict[tuple[str, Span, str], Finding] = {}
    for finding in findings:
        if finding.span.line > 0 and (finding.fixes or not _elsewhere(finding, lent)):
            notes = tuple(note for note in finding.notes if note.span.line > 0)
            # A mistake may show on more than one way into the file.
            told.setdefault((finding.code, finding.span, finding.message), finding._replace(notes=notes))
    ordered = sorted(told.values(), key=lambda finding: (finding.span, finding.code))
    return _Analysis(parsed, tuple(ordered), tuple(problems), program.messages, program)


def _elsewhere(finding: Finding, lent: Collection[Span]) -> bool:
    """Whether a part of what a finding tells happens in an imported module."""
    return finding.span in lent or any(note.span in lent for note in finding.notes)


def _failure(path: str, what: str, error: Exception) -> Problem:
    if isinstance(error, RecursionError):
        return Problem(path, f"is nested too deeply for {what}", "internal-error")
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" ({os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno})" if place else ""
    return Problem(path, f"{what} failed: {type(error).__name__}: {error}{where}", "internal-error")


def _reported(analysis: _Analysis, options: Options) -> tuple[Finding, ...]:
    """The findings of the selected codemods that are bad enough, and that no comment silences."""
    return tuple(
        finding
        for finding in analysis.findings
        if finding.code in options.selected
        and (finding.severity is None or finding.severity.reaches(options.min_severity))
        and not _silenced(finding, analysis.source)
    )


def _silenced(finding: Finding, parsed: Source) -> bool:
    """Whether a comment silences a finding: where it is found, or where it is told."""
    told = [finding, *(placed(finding, fix, parsed.tree) for fix in finding.fixes)]
    return any(parsed.suppressed(one.code, one.span) for one in told)


# ---------------------------------------------------------------------------- choosing a fix


ALONE = 12
"""How many versions of a file are looked at that have one fix each, and then"""
TOGETHER = 12
"""how many of which each has the fixes of many findings."""
STEPS = 30_000, 120_000
"""Steps of the model after which no further version is looked at that has one fix, or many."""


class _Budget:
    """What may be spent on the choice of the fixes of one file."""

    def __init__(self, before: Program | None) -> None:
        self._version = before.steps if before is not None else 0
        """How many steps a version takes, about: as many as the file as it is."""
        self.steps = 0
        self.versions = 0
        self.exceeded = False

    def charge(self, program: Program) -> None:
        """Count a version of the file that was looked at, what the model has run, and a step a line."""
        self.versions += 1
        self.steps += program.steps + program.text.count("\n")

    @property
    def for_one(self) -> bool:
        """Whether there is something left for a version with one fix alone."""
        return self.versions < ALONE and self.steps + self._version <= STEPS[0]

    @property
    def for_many(self) -> bool:
        """Whether there is something left for a version with many fixes."""
        return self.versions < ALONE + TOGETHER and self.steps < STEPS[1]


def _with_fixes(
    analysis: _Analysis, findings: Iterable[Finding], options: Options, notes: list[str]
) -> Iterator[Reported]:
    """``findings``, each with the fix that is chosen for it; where that takes too much, a note says so."""
    whole = options.selected == options.catalog.names
    everything = analysis if whole else _analyse(analysis.source, options)
    budget = _Budget(everything.program)
    waiting = list(findings)
    chosen: list[Reported] = []
    while len(chosen) < len(waiting) and budget.for_one:
        finding = waiting[len(chosen)]
        chosen.append(_with_fix(everything, finding, _in_order(finding, options), options, budget))
    chosen += _together(everything, waiting[len(chosen) :], options, budget)
    if budget.exceeded:
        notes.append(
            f"no more fixes were chosen after {budget.versions} versions of the file: some findings show none"
        )
    for reported in chosen:
        lent = everything.program.lent() if everything.program is not None else ()
        if reported.fix is not None:
            yield reported._replace(finding=placed(reported.finding, reported.fix, analysis.source.tree))
        elif not _elsewhere(reported.finding, lent):
            yield reported


def _together(
    analysis: _Analysis, findings: Sequence[Finding], options: Options, budget: _Budget
) -> list[Reported]:
    """``findings`` with the first fix of each, if one version of the file that has them all bears them out.

    Else half of them, and the other half.
    """
    if not budget.for_many:
        budget.exceeded = budget.exceeded or any(finding.fixes for finding in findings)
        return [Reported(finding) for finding in findings]
    if len(findings) < 2 or not analysis.source.lossless:
        return [_with_fix(analysis, f, _in_order(f, options), options, budget) for f in findings]
    made = {finding: fixes[0] for finding in findings if (fixes := _in_order(finding, options))}
    edits = dict.fromkeys(edit for fix in made.values() for edit in fix.edits)
    text = _rewritten(analysis.source, tuple(edits))
    after = _bears_out(analysis, made, text, options, budget)
    if after is None:
        half = len(findings) // 2
        return [
            *_together(analysis, findings[:half], options, budget),
            *_together(analysis, findings[half:], options, budget),
        ]
    after.release()
    texts = {finding: _rewritten(analysis.source, fix.edits) for finding, fix in made.items()}
    return [
        Reported(finding) if texts.get(finding) is None else Reported(finding, made[finding], texts[finding])
        for finding in findings
    ]


def _in_order(finding: Finding, options: Options) -> list[Fix]:
    """The fixes of a finding: best first, but those that may be applied before those that may not."""
    return sorted(finding.by(options.way), key=lambda fix: not _allowed(fix, options))


def _with_fix(
    analysis: _Analysis,
    finding: Finding,
    fixes: Iterable[Fix],
    options: Options,
    budget: _Budget | None = None,
) -> Reported:
    """``finding`` with the first of ``fixes`` that resolves it, if the file can be written back."""
    for fix in fixes if analysis.source.lossless else ():
        text = _rewritten(analysis.source, fix.edits)
        after = _bears_out(analysis, {finding: fix}, text, options, budget)
        if after is not None:
            after.release()
            return Reported(finding, fix, after.source.text)
    return Reported(finding)


def _worth_telling(reported: Reported) -> bool:
    """Whether there is anything to do about a finding: wasted work that cannot be saved is no mistake."""
    fixes = reported.finding.fixes
    return reported.fix is not None or not fixes or any(f.effect is not Effect.PRESERVES for f in fixes)


def _allowed(fix: Fix, options: Options) -> bool:
    return options.unsafe_fixes or fix.effect is not Effect.CHANGES


def _resolved(analysis: _Analysis, finding: Finding, fix: Fix, options: Options) -> _Analysis | None:
    """The file after ``fix``, if the model says that ``finding`` is gone and nothing new has come."""
    text = _rewritten(analysis.source, fix.edits)
    return _bears_out(analysis, {finding: fix}, text, options)


def _rewritten(before: Source, edits: Sequence[Edit]) -> str | None:
    """The text after ``edits``; None if they cannot be made."""
    text = spliced(before.text, before.tree, edits)
    if text is None:
        from gradfix.rewrite import apply_fixes

        rewrite = apply_fixes(before.text, [edits])
        text = None if rewrite.failed or rewrite.deferred else rewrite.text
    return text


def _bears_out(
    analysis: _Analysis,
    made: Mapping[Finding, Fix],
    text: str | None,
    options: Options,
    budget: _Budget | None = None,
) -> _Analysis | None:
    """The file with the ``text`` after the fixes ``made``, if its findings are those that these leave.

    All codemods are asked, selected or not: a fix may not trade one mistake for another. Nor may it
    leave a network without the gradient that it was to learn from.
    """
    from gradfix.autograd.regression import worse

    before = analysis.source
    parsed = before.with_text(text) if text is not None and text != before.text else None
    if not isinstance(parsed, Source) or analysis.program is None:
        return None
    repairs = any(fix.effect is Effect.REPAIRS and fix.claim.raises is not None for fix in made.values())
    cuts = all(fix.only_cuts for fix in made.values())
    after = None
    # Where nobody goes on from this version, ways into the file that never come to the change are left out.
    spans = [span for fix in made.values() for edit in fix.edits for span in spans_of(edit)]
    ways = analysis.program.ways_to(spans) if budget is not None else None
    for chosen in (None,) if ways is None else (ways, None):
        program = _model(parsed, chosen)
        if isinstance(program, Problem):
            return None
        if not worse(analysis.program, program, repairs, not cuts, chosen):
            if cuts and budget is not None:
                # What runs that are made on demand would rule out is no new mistake either.
                with program.no_further_runs():
                    after = _without(analysis, made, _diagnose(parsed, program, options))
            # The codemods come last: they ask for every further run, `worse` for the first bad one.
            after = after or _without(analysis, made, _diagnose(parsed, program, options))
        if budget is not None:
            budget.charge(program)
        if after is not None:
            return after
        program.release()
    return None


def _without(before: _Analysis, made: Mapping[Finding, Fix], after: _Analysis) -> _Analysis | None:
    """``after``, if what is mended is gone there and nothing has come."""
    if any(problem not in before.problems for problem in after.problems):
        return None
    return after if _also_gone(before, made, after) is not None else None


def _also_gone(before: _Analysis, made: Mapping[Finding, Fix], after: _Analysis) -> list[Finding] | None:
    """The findings of ``before`` that are gone besides those that are mended; ``None`` if others have come.

    A finding is recognised by its code and the text of its line, or, where a fix has changed that
    line, by the place of the line. Where a fix changes who learns from what, work may be wasted elsewhere
    that had no consumer before, or a wrong one: that can be saved afterwards.
    """
    pool = [finding for finding in before.findings if finding not in made]
    redirects = any(fix.effect is not Effect.PRESERVES for fix in made.values())
    changed: list[Finding] = []
    for finding in after.findings:
        known = next((old for old in pool if _identity(old, before) == _identity(finding, after)), None)
        if known is None:
            changed.append(finding)
        else:
            pool.remove(known)
    moved_to = _line_map(before.source.lines, after.source.lines) if changed else {}
    untouched = {
        new for old, new in moved_to.items() if before.source.lines[old - 1] == after.source.lines[new - 1]
    }
    for finding in changed:
        known = next(
            (
                old
                for old in pool
                if old.code == finding.code and moved_to.get(old.span.line) == finding.span.line
            ),
            None,
        )
        if known is not None:
            pool.remove(known)
        elif not (redirects and _only_wastes(finding) and finding.span.line in untouched):
            return None
    return pool


def _only_wastes(finding: Finding) -> bool:
    """Whether what a finding reports changes no gradient, and can be mended."""
    return bool(finding.fixes) and all(fix.effect is Effect.PRESERVES for fix in finding.fixes)


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
    reports = _reports(paths, loading, options, with_fixes=False)
    told = [(file, report) for file, report in zip(loading.files, reports) if _anything(report)]
    repairable = [file.path for file, report in told if any(one.finding.fixes for one in report.findings)]
    fixable = len(repairable)
    options = with_environment(repairable, options)
    with servers_kept() if options.verify and fixable else nullcontext():
        files = for_each(
            lambda one: _plan_file(*one, options),
            told,
            lambda one: Repaired(
                one[0].path, one[0].data, one[0].data, one[1].text, problems=_lost(one[0]).problems
            ),
            worth=WORTH_SERVERS if options.verify and fixable >= WORTH_SERVERS else WORTH_PROCESSES,
        )
    return Plan(tuple(files), loading.problems, loading.checked, loading.empty)


WORTH_SERVERS = 6
"""From so many files with fixes on, each processor imports torch for itself, which takes 1 to 2 s."""


def servers_kept() -> AbstractContextManager[None]:
    """Have the processes that run scripts wait for the next one, instead of starting anew for each."""
    from gradfix.verify.runner import servers_kept

    return servers_kept()


def _budget(options: Options) -> AbstractContextManager[None]:
    """The seconds that everything which is run for one file may take together."""
    from gradfix.verify.runner import budget

    return budget(max(PER_FILE, RUNS_PER_FILE * _limits(options).seconds))


PER_FILE, RUNS_PER_FILE = 120.0, 4
"""Seconds for one file, at least, and the longest runs that there is time for."""


def _plan_file(file: _Loaded, report: FileReport, options: Options) -> Repaired:
    parsed = source.parse(file.path, file.data, options.settings.max_file_size) if report.findings else None
    unchanged = Repaired(file.path, file.data, file.data, report.text, remaining=report.findings)
    try:
        with _budget(options) if options.verify and parsed is not None else nullcontext():
            repaired = repair(parsed, options) if isinstance(parsed, Source) else unchanged
    except Exception as error:
        repaired = unchanged._replace(problems=(_failure(file.path, "the rewriting", error),))
    return repaired._replace(
        problems=report.problems + repaired.problems, messages=report.messages, unanalysed=report.unanalysed
    )


def repair(parsed: Source, options: Options) -> Repaired:
    """Apply one fix after the other to ``parsed``, each proved before the next is chosen.

    A fix is chosen on the text that those before it have left, so fixes never conflict, and each
    leaves fewer findings than there were, so it ends. One that is refuted is left out; it is tried
    again when others have been applied.
    """
    analysis = _analyse(parsed, options)
    if not parsed.lossless:
        lossy = Problem(parsed.path, f"cannot be rewritten: {parsed.encoding} does not give its bytes back")
        left = tuple(Reported(finding) for finding in _reported(analysis, options))
        return Repaired(parsed.path, parsed.data, parsed.data, parsed.text, (), left, (lossy,))
    repaired, attempts = _apply_in_turn(analysis, options)
    # A fix that is left was refuted, did not do, or needs leave: only the last are still on offer.
    remaining = tuple(
        _with_fix(
            repaired, finding, [fix for fix in finding.by(options.way) if not _allowed(fix, options)], options
        )
        for finding in _reported(repaired, options)
    )
    remaining = tuple(_left(one, options) for one in remaining)
    # What running it has refuted is told, and so is its finding.
    refused = {attempt.finding.code for attempt in attempts if not attempt.applied}
    lent = repaired.program.lent() if repaired.program is not None else ()
    remaining = tuple(
        one
        for one in remaining
        if one.finding.code in refused
        or one.left
        or (_worth_telling(one) and (one.fix is not None or not _elsewhere(one.finding, lent)))
    )
    result = repaired.source
    return Repaired(parsed.path, parsed.data, result.data, result.text, attempts, remaining)


def _left(reported: Reported, options: Options) -> Reported:
    """``reported``, with the reason if it is left alone since it cannot be repaired in the way asked for."""
    way, admits = options.way, reported.finding.admits
    if way is None or reported.fix is not None or not admits:
        return reported
    if way in admits:
        return reported._replace(left=f"left alone: `--way {way}` does not mend it here")
    others = " or ".join(f"`--way {one}`" for one in admits)
    return reported._replace(left=f"left alone: `--way {way}` is no way to mend it, but {others}")


def _apply_in_turn(analysis: _Analysis, options: Options) -> tuple[_Analysis, tuple[Attempt, ...]]:
    """The file after every fix that holds, and all attempts: the applied ones, then the refuted ones."""
    applied: list[Attempt] = []
    refuted: dict[_FixKey, Attempt] = {}
    tried: set[_FixKey] = set()
    progress = False
    while True:
        candidate = next((found for found in _candidates(analysis, options) if found.key not in tried), None)
        if candidate is None:
            if not progress:
                return analysis, (*applied, *refuted.values())
            # What did not do before may do for the text as it is now: of two mistakes that raise,
            # only the fix for the one that raises first can be proved while both are there.
            tried, progress = set(), False
            continue
        tried.add(candidate.key)
        after = _resolved(analysis, candidate.finding, candidate.fix, options)
        if after is None:
            continue
        attempt = _prove(analysis, candidate, after, options)._replace(
            also=_gone(analysis, candidate, after, options),
            shown=placed(candidate.finding, candidate.fix, analysis.source.tree),
        )
        if options.compare and attempt.applied:
            attempt = attempt._replace(ways=tuple(_other_ways(analysis, candidate, options)))
        if attempt.applied:
            applied.append(attempt)
            refuted.pop(candidate.key, None)
            analysis, progress = after, True
        else:
            refuted[candidate.key] = attempt


def _other_ways(before: _Analysis, candidate: _Candidate, options: Options) -> Iterator[Attempt]:
    """The repairs of the same finding in the other ways that it admits, each proved as if it were applied."""
    finding = candidate.finding
    for way in finding.admits:
        for fix in finding.by(way) if way is not candidate.fix.way else ():
            after = _resolved(before, finding, fix, options) if _allowed(fix, options) else None
            if after is not None:
                yield _prove(
                    before, _Candidate((*candidate.key[:3], fix.message), finding, fix), after, options
                )
                break


def _gone(
    before: _Analysis, candidate: _Candidate, after: _Analysis, options: Options
) -> tuple[Finding, ...]:
    """The findings that a fix resolves beside its own."""
    gone = _also_gone(before, {candidate.finding: candidate.fix}, after) or ()
    return tuple(finding for finding in _reported(before, options) if finding in gone)


def offers(parsed: Source, options: Options) -> Iterator[tuple[Attempt, Source]]:
    """Every fix that ``repair`` could apply to ``parsed`` next, in order, with the file after it.

    Nothing is run. Who holds a rewrite that was made elsewhere finds it here, or it is not one of ours.
    """
    analysis = _analyse(parsed, options)
    for candidate in _candidates(analysis, options):
        after = _resolved(analysis, candidate.finding, candidate.fix, options)
        if after is not None:
            text = after.source.text
            found = Attempt(candidate.finding, candidate.fix, parsed.text, text, Outcome.UNVERIFIED)
            yield found, after.source


def findings(parsed: Source, options: Options) -> tuple[Finding, ...]:
    """What the selected codemods report of ``parsed`` and no comment silences. Nothing is run."""
    return tuple(reported.finding for reported in diagnosed(parsed, options).findings)


def diagnosed(parsed: Source, options: Options) -> FileReport:
    """The same, with what has kept the analysis from seeing all of the file."""
    analysis = _analyse(parsed, options, options.selected)
    found = tuple(Reported(finding) for finding in _reported(analysis, options))
    return FileReport(parsed.path, parsed.text, found, analysis.problems, analysis.messages)


_FixKey = tuple[str, str, int, str]


class _Candidate(NamedTuple):
    key: _FixKey
    """A name for the fix that outlives changes elsewhere in the file."""
    finding: Finding
    fix: Fix


def _candidates(analysis: _Analysis, options: Options) -> Iterator[_Candidate]:
    """Every fix that may be applied, in order."""
    for key, finding in _keyed(analysis, options).items():
        for fix in finding.by(options.way):
            if _allowed(fix, options):
                yield _Candidate((*key, fix.message), finding, fix)


def _prove(before: _Analysis, candidate: _Candidate, after: _Analysis, options: Options) -> Attempt:
    """Run the file before and after, and hold what happens against the claim of the fix.

    The claim is completed by what the model says of the fixed program, so the model is tested too.
    """
    fix = candidate.fix
    text = after.source.text
    if not fix.claim.feeds and before.program is not None and after.program is not None:
        from gradfix.autograd.prediction import feeds

        fix = fix._replace(claim=fix.claim._replace(feeds=feeds(after.program, before.program)))
    attempt = Attempt(candidate.finding, fix, before.source.text, text, Outcome.UNVERIFIED)
    if not options.verify:
        return attempt
    try:
        evidence = _evidence(before, after, fix, options)
    except Exception as error:
        reason = _failure(before.source.path, "verification", error).message
        return attempt._replace(reason=reason, withheld=not options.unproved)
    outcomes = {"proved": Outcome.PROVED, "refuted": Outcome.REFUTED}
    outcome = outcomes.get(evidence.outcome, Outcome.UNVERIFIED)
    withheld = not options.unproved and outcome is Outcome.UNVERIFIED
    return attempt._replace(outcome=outcome, reason=evidence.reason, evidence=evidence, withheld=withheld)


def _faults(analysis: _Analysis) -> Faults:
    """What runs of a version may stop at, as the findings say."""
    from gradfix.claims import Faults

    spans = [span for one in analysis.findings for span in (one.span, *(note.span for note in one.notes))]
    told = [fix.claim for one in analysis.findings for fix in one.fixes]
    lines = {line for span in spans for line in range(span.line, span.end_line + 1)}
    lines |= {claim.raises_line for claim in told if claim.raises_line is not None}
    return Faults(frozenset(lines), frozenset(claim.raises for claim in told if claim.raises is not None))


def _evidence(before: _Analysis, after: _Analysis, fix: Fix, options: Options) -> Evidence:
    """What running both versions shows: by the user's command, else alone, else through a script that imports
    the file."""
    from gradfix.autograd.callers import scripts
    from gradfix.verify.command import Command
    from gradfix.verify.runner import verify_rewrite

    path = Path(before.source.path)

    def run(command: Command) -> Evidence:
        return verify_rewrite(
            path,
            before.source.text,
            after.source.text,
            fix.claim,
            fix.effect,
            faults=(_faults(before), _faults(after)),
            python=options.interpreter,
            command=command,
            limits=_limits(options),
            allow_unsandboxed=options.allow_unsandboxed,
        )

    chosen = command_for(str(path), options)
    evidence = run(chosen)
    if evidence.outcome != "not run" or chosen != Command(readable=chosen.readable, env=chosen.env):
        return evidence
    for script in scripts(os.path.realpath(path))[:THROUGH]:
        through = run(replace(chosen, entry=Path(script.path)))
        if through.outcome != "not run":
            return through
        tried = f"run through {os.path.basename(script.path)}: {through.reason}"
        evidence = replace(evidence, reason=f"{evidence.reason}; {tried}")
    return evidence


THROUGH = 2
"""Scripts that import a file, through which it is run if it does nothing by itself."""


def command_for(path: str, options: Options) -> Command:
    """How the user runs the file at ``path``: by the command line, else by the configuration.

    Raises:
        CommandError: if the configuration's command for it cannot be understood.
    """
    from gradfix.verify import command

    settings = options.settings.verify
    folder = Path(settings.cwd) if settings.cwd else None
    found = command.Command()
    if options.module is not None:
        found = command.of_module(options.module, Path.cwd())
    elif options.script is not None:
        found = command.Command(entry=Path(options.script), cwd=Path.cwd())
    elif options.arguments:
        found = command.Command(cwd=Path.cwd())
    elif (text := _configured(path, options.settings)) is not None:
        base = folder or _configured_in(options.settings)
        found = replace(command.parse(text, base), cwd=base)
    if options.module is None and options.script is None:
        _keep_within(_configured_in(options.settings), found.entry, folder)
    return replace(
        found,
        args=options.arguments or found.args,
        cwd=found.cwd or folder,
        readable=tuple(Path(one) for one in settings.readable),
        env=settings.env,
    )


def _configured_in(settings: project.Settings) -> Path:
    """The folder of the configuration."""
    return Path(os.path.dirname(os.path.abspath(settings.file or "")))


def _keep_within(root: Path, *named: Path | None) -> None:
    """Refuse what a configuration names outside its own folder: it may have come with the code.

    Raises:
        CommandError: if it does.
    """
    from gradfix.verify.command import CommandError

    for one in named:
        if one is not None and not one.resolve().is_relative_to(root.resolve()):
            raise CommandError(f"tool.gradfix.verify names {one}, which is outside of {root}")


def _configured(path: str, settings: project.Settings) -> str | None:
    """The command that the configuration has for a file."""
    if not settings.verify.command:
        return None
    from pathspec import GitIgnoreSpec

    root = os.path.realpath(_configured_in(settings))
    name = os.path.relpath(os.path.realpath(path), root).replace(os.sep, "/")
    for pattern, text in settings.verify.command:
        if GitIgnoreSpec.from_lines([pattern]).match_file(name):
            return text
    return None


def _limits(options: Options) -> Limits:
    from gradfix.verify.runner import Limits

    seconds = options.settings.verify.seconds
    return Limits() if seconds is None else Limits(seconds=seconds, total=max(Limits().total, 10 * seconds))


def with_environment(paths: Iterable[str], options: Options) -> Options:
    """The options with the interpreter of an environment for these scripts, if one is asked for."""
    chosen = [Path(path) for path in paths]
    if options.environment is None or options.interpreter is not None or not chosen or not options.verify:
        return options
    from gradfix.verify.interpreter import Interpreter

    return replace(options, interpreter=Interpreter(options.environment(chosen), "--env"))


def rerun(certificate: Certificate, place: Place | None, options: Options) -> Evidence:
    """What running both versions of a certificate shows now, in ``place`` or in an empty folder."""
    from gradfix.verify.interpreter import choose_interpreter
    from gradfix.verify.runner import Evidence, verify_rewrites

    # The certificate does not choose it: it is the one that scripts where the user is are run with.
    name = os.path.basename(certificate.filename)
    interpreter = options.interpreter or choose_interpreter(place.file if place else Path.cwd() / name)
    if isinstance(interpreter, str):
        return Evidence("not run", interpreter)
    with (
        _budget(options),
        tempfile.TemporaryDirectory(prefix="gradfix-", ignore_cleanup_errors=True) as folder,
    ):
        here = place or certificate.place_apart(Path(folder))
        command = command_for(str(here.file), options)
        (evidence,) = verify_rewrites(
            [replace(certificate.rewrite(here), faults=_certified_faults(certificate, here, options))],
            python=interpreter,
            command=command if place else replace(command, cwd=Path(folder)),
            limits=_limits(options),
            allow_unsandboxed=options.allow_unsandboxed,
        )
    return evidence


def _certified_faults(
    certificate: Certificate, place: Place, options: Options
) -> tuple[Faults, Faults] | None:
    """What runs of the two versions of a certificate may stop at: it is found out anew, not read in it."""
    limit = options.settings.max_file_size
    versions = [
        source.parse(str(place.file), text.encode(), limit)
        for text in (certificate.before, certificate.after)
    ]
    before, after = versions
    if isinstance(before, Problem) or isinstance(after, Problem):
        return None
    return _faults(_analyse(before, options)), _faults(_analyse(after, options))


# ---------------------------------------------------------------------------- repairs by others

REPAIRS = 12
"""Most programs that are made of an original to judge a repair by."""


def judge(before: str, after: str, options: Options) -> Iterator[Judged]:
    """What is to be said of each mistake in ``before``, a file or a folder, if ``after`` is its repair.

    In folders, files go together that have the same path in them; those that are equal are passed over.
    """
    options = with_environment([before], options)
    with servers_kept():
        for old, new in _pairs(before, after, options):
            if isinstance(old, Problem) or isinstance(new, Problem):
                problems = tuple(one for one in (old, new) if isinstance(one, Problem))
                yield Judged(before, after, problems=problems)
            else:
                with _budget(options):
                    judged = _judge(old, new, options)
                yield judged


def _pairs(before: str, after: str, options: Options) -> Iterator[tuple[Source | Problem, Source | Problem]]:
    if os.path.isdir(before) != os.path.isdir(after):
        message = "two files or two folders can be compared, not a file and a folder"
        yield Problem(after, message), Problem(before, message)
        return
    if not os.path.isdir(before):
        yield _parsed(before, options), _parsed(after, options)
        return
    for listed in project.find_files([before], options.settings).files:
        mate = os.path.join(after, os.path.relpath(listed.path, before))
        old = source.load(listed.path)
        if isinstance(old, Problem) or not source.can_matter(old):
            continue
        new = source.load(mate)
        if isinstance(new, Problem) or new != old:
            yield _parsed(listed.path, options), _parsed(mate, options)


def _parsed(path: str, options: Options) -> Source | Problem:
    return source.read(path, options.settings.max_file_size)


def _judge(old: Source, new: Source, options: Options) -> Judged:
    from gradfix.verify import judging

    before, after = _analyse(old, options), _analyse(new, options)
    problems = (*before.problems, *after.problems)
    keyed = _keyed(before, options)
    if problems or not keyed:
        return Judged(old.path, new.path, problems=problems)
    made = sorted(_repairs(before, options), key=lambda made: -len(made.gone))
    repairs = [
        judging.Repair(
            one.analysis.source.text,
            frozenset(number for number, key in enumerate(keyed) if key in one.gone),
            f"with this fix: {', then '.join(one.fixes)}",
            one.choice,
        )
        for one in made
    ]
    mistakes = [
        judging.Mistake(
            next((fix.claim for fix in finding.fixes), Claim()),
            carried=finding.code == "carried-hidden-state",
            entries=finding.code in _ENTRIES,
            kept=finding.code in (*_ENTRIES, "stale-forward", "undetached-fake"),
            still_there=_still_there(key, keyed, _keyed(after, options)),
        )
        for key, finding in keyed.items()
    ]
    judgement = judging.judge(
        (Path(old.path), old.text),
        (Path(new.path), new.text),
        mistakes,
        repairs,
        python=options.interpreter,
        command=command_for(old.path, options),
        limits=_limits(options),
        allow_unsandboxed=options.allow_unsandboxed,
    )
    return Judged(old.path, new.path, old.text, tuple(keyed.values()), judgement)


_FindingKey = tuple[str, str, int]

_ENTRIES = ("graph-used-twice", "loss-backpropagated-twice")
"""The mistakes that are only about which loss is given to whom, and how often."""


def _keyed(analysis: _Analysis, options: Options) -> dict[_FindingKey, Finding]:
    """The findings, under names that outlive changes elsewhere in the file."""
    seen: dict[tuple[str, str], int] = {}
    keyed: dict[_FindingKey, Finding] = {}
    for finding in _reported(analysis, options):
        identity = _identity(finding, analysis)
        ordinal = seen[identity] = seen.get(identity, -1) + 1
        keyed[*identity, ordinal] = finding
    return keyed


def _still_there(
    key: _FindingKey, before: Mapping[_FindingKey, Finding], after: Mapping[_FindingKey, Finding]
) -> str | None:
    """What the model says of a mistake in the new version, if it is there yet, or a worse one is.

    Where nothing remains of it but wasted work, runs tell whether gradients are right.
    """
    if any(fix.effect is not Effect.PRESERVES for fix in before[key].fixes):
        after = {
            other: finding
            for other, finding in after.items()
            if not finding.fixes or any(fix.effect is not Effect.PRESERVES for fix in finding.fixes)
        }
    if key in after:
        return after[key].message
    counts = Counter(code for code, _, _ in after)
    for code, count in Counter(code for code, _, _ in before).items():
        # Its line has another text now, and it is as wrong as it was.
        if code == key[0] and counts[code] >= count:
            return next(finding.message for finding in after.values() if finding.code == code)
    for finding in after.values():
        new = counts[finding.code] > sum(code == finding.code for code, _, _ in before)
        if new and all(fix.effect is not Effect.PRESERVES for fix in finding.fixes):
            return f"it became another: {finding.message}"
    return None


class _Made(NamedTuple):
    """The original after some fixes."""

    analysis: _Analysis
    gone: frozenset[_FindingKey]
    """The findings of the original that it does not have."""
    fixes: tuple[str, ...]
    choice: bool = False
    """Whether one of them is a choice between losses that only the author can make."""


def _repairs(before: _Analysis, options: Options) -> Iterator[_Made]:
    """What gradfix's own fixes make of the original, for each choice of a fix, or none, for each finding."""
    every = frozenset(_keyed(before, options))
    work = [(_Made(before, frozenset(), ()), every)]
    seen = {before.source.text}
    while work and len(seen) <= REPAIRS:
        made, open_ = work.pop()
        keyed = _keyed(made.analysis, options)
        key = next((key for key in keyed if key in open_), None)
        if key is None:
            continue
        work.append((made, open_ - {key}))
        for fix in reversed(_certain(keyed[key].fixes)):
            after = _resolved(made.analysis, keyed[key], fix, options)
            if after is None or after.source.text in seen:
                continue
            seen.add(after.source.text)
            gone = every - _keyed(after, options).keys()
            choice = fix.effect is Effect.CHANGES and keyed[key].code in _ENTRIES
            child = _Made(after, gone, (*made.fixes, fix.message), made.choice or choice)
            yield child
            work.append((child, open_ - {key}))


def _certain(fixes: tuple[Fix, ...]) -> tuple[Fix, ...]:
    """Those that nobody has to decide on, if there are any: what is a choice is no measure for others."""
    return tuple(fix for fix in fixes if fix.effect is not Effect.CHANGES) or fixes


# ---------------------------------------------------------------------------- what to do with a plan


def write(planned: Plan) -> Plan:
    """Write every file of the plan; one that cannot be written is a problem and keeps its bytes.

    What they hold before is kept first, so that :mod:`gradfix.journal` can take it all back.
    """
    from gradfix import files, journal

    applied = [file for file in planned.files if file.applied]
    if not applied:
        return planned
    interrupts.check()
    try:
        with interrupts.whole():
            kept = journal.record((file.path, file.before, file.after) for file in applied)
    except OSError as error:
        kept, planned = None, replace(planned, unkept=files.told(error, "cannot be kept"))
    written = replace(planned, files=tuple(_written(planned.files)))
    if kept is not None:
        with suppress(OSError):  # It says more than it has to, then.
            journal.keep(kept, {os.path.realpath(file.path) for file in written.files if file.written})
    return written


def _written(files: Sequence[Repaired]) -> Iterator[Repaired]:
    """The files, written one by one; an interrupt ends that between two of them."""
    wanted, done = sum(bool(file.applied) for file in files), 0
    for file in files:
        interrupts.check()
        with interrupts.whole():
            written = _write(file)
            done += written.written
            interrupts.say(f"{done} of {wanted} file{'' if wanted == 1 else 's'} written")
        yield written
    interrupts.check()


def _write(file: Repaired) -> Repaired:
    if not file.applied:
        return file
    problem = project.replace(file.path, file.before, file.after)
    if problem is not None:
        return file._replace(problems=(*file.problems, problem))
    return file._replace(written=True)


def patch(planned: Plan) -> Patch | Problem:
    """The patch for every file of the plan; a problem if one of them cannot be told as a patch."""
    return patch_of((file.path, file.before, file.after) for file in planned.files if file.applied)


def patch_of(changes: Iterable[tuple[str, bytes, bytes]]) -> Patch | Problem:
    """The patch for files by their paths, each with its bytes before and after."""
    from gradfix import patch as patches

    files = {os.path.realpath(path): (before, after) for path, before, after in changes}
    here = os.path.realpath(os.curdir)
    folder = here if all(path.startswith(os.path.join(here, "")) for path in files) else _folder_of(files)
    contents = {
        os.path.relpath(path, folder).replace(os.sep, "/"): texts for path, texts in sorted(files.items())
    }
    data = patches.combine(patches.unified_diff(path, *texts) for path, texts in contents.items())
    wrong = patches.check(data, contents)
    return Problem(folder, wrong, "internal-error") if wrong else Patch(data, folder)


def _folder_of(files: Iterable[str]) -> str:
    return os.path.commonpath([os.path.dirname(file) for file in files])
