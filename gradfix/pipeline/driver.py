"""The driver of the pipeline: paths -> files -> findings -> rewrites -> evidence.

``prepare`` turns what the user asked for into :class:`Options`, ``check`` finds, ``plan`` decides on the
rewrites and has each one proved, ``write`` and ``patch`` are the two things to do with a plan. What happened
is told in values, those of :mod:`gradfix.pipeline.results`. The chapters are :mod:`gradfix.pipeline.options`,
:mod:`gradfix.pipeline.analysis`, :mod:`gradfix.pipeline.choosing` and :mod:`gradfix.pipeline.proving`; where
the rewrite is somebody else's, :mod:`gradfix.pipeline.reviewing`.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gradfix.core.codemod import Effect, Finding, Unanalysed, UnknownFunction
from gradfix.pipeline.analysis import (
    Analysis,
    analyse,
    by_key,
    idle_suppressions,
    is_elsewhere,
    problem_of,
    reported_by,
)
from gradfix.pipeline.choosing import choose_fix, choose_fixes, is_allowed, resolve
from gradfix.pipeline.mended import Tally
from gradfix.pipeline.options import Options, Refusal, RequestedOptions, prepare
from gradfix.pipeline.placing import placed
from gradfix.pipeline.proving import Candidate, FixKey, prove, servers_kept, time_budget, with_environments
from gradfix.pipeline.results import Attempt, FilePlan, FileReport, Outcome, Patch, Plan, Report, Reported
from gradfix.project import configuration, source, traces
from gradfix.project.source import Problem, Source
from gradfix.system import interrupts, progress
from gradfix.system.parallel import WORTH_PROCESSES, for_each

if TYPE_CHECKING:
    from gradfix.pipeline.cache import Cache

__all__ = [
    "Options",
    "Refusal",
    "RequestedOptions",
    "check",
    "check_text",
    "file_report",
    "findings",
    "in_force",
    "offers",
    "patch",
    "patch_of",
    "plan",
    "prepare",
    "repair",
    "write",
]


class _Loaded(NamedTuple):
    path: str
    data: bytes
    options: Options
    """Those under its own configuration."""


class _Loading(NamedTuple):
    """The files that can matter, and what went wrong on the way to them."""

    files: tuple[_Loaded, ...]
    problems: tuple[Problem, ...]
    checked: int
    empty: tuple[str, ...]


def _load(paths: Sequence[str], options: Options) -> _Loading:
    traces.look_again()
    listing = options.files(paths)
    problems = [*options.catalog.problems, *listing.problems]
    loaded: list[_Loaded] = []
    for listed in listing.files:
        own = options.under(listed.settings)
        if isinstance(own, Refusal):
            file = listed.settings.file or ""
            problems.append(Problem(file, own.message.removeprefix(f"{file}: ")))
            continue
        limit = own.settings.max_file_size
        data = source.load(listed.path, limit)
        if isinstance(data, Problem):
            problems.append(data)
        elif not (listed.named or source.can_matter(data)):
            continue  # A file that is named is parsed in any case: its user wants to know if it is broken.
        elif (problem := source.too_large(listed.path, data, limit)) is not None:
            problems.append(problem)  # It is let go at once: many of them are more than memory holds.
        else:
            loaded.append(_Loaded(listed.path, data, own))
    return _Loading(tuple(loaded), tuple(dict.fromkeys(problems)), len(listing.files), listing.empty)


def check(paths: Sequence[str], options: Options) -> Report:
    """The findings in ``paths``, each with the fix that ``apply`` would choose for it."""
    loading = _load(paths, options)
    reports = _reports(paths, loading, with_fixes=True)
    with_content = tuple(report for report in reports if not report.silent)
    return Report(with_content, loading.problems, loading.checked, loading.empty)


def check_text(path: str, data: bytes, options: Options) -> FileReport:
    """The findings in what is to be the content of the file at ``path``, as :func:`check` has them."""
    traces.look_again()
    with traces.on_behalf_of(os.path.abspath(path)):
        return _look(_Loaded(path, data, options), with_fixes=True)


GARBAGE = 200_000
"""Garbage is collected after a file, if this many objects have been allocated, and not during a run."""


def in_force(paths: Sequence[str], options: Options) -> tuple[Options, ...]:
    """The options under every configuration that holds for a file of ``paths``, each once."""
    found = [
        options.under(settings)
        for settings in dict.fromkeys(one.settings for one in options.files(paths).files)
    ]
    return tuple(one for one in found if isinstance(one, Options)) or (options,)


def _reports(paths: Sequence[str], loading: _Loading, *, with_fixes: bool) -> list[FileReport]:
    """What there is to say of each file, as it is known from another time or as it is found out now."""
    kept: dict[int, Cache | None] = {}
    if any(file.options.cached for file in loading.files):
        from gradfix.pipeline import cache

        repository = configuration.repository(paths)
        different = {id(file.options): file.options for file in loading.files}
        kept = {key: cache.open_for(one, repository, with_fixes=with_fixes) for key, one in different.items()}

    def look(file: _Loaded) -> FileReport:
        with traces.on_behalf_of(os.path.abspath(file.path)):
            report = _look(file, with_fixes=with_fixes)
        if (entries := kept.get(id(file.options))) is not None:
            entries.put(file.path, file.data, report)
        if gc.isenabled() and gc.get_count()[0] > GARBAGE:
            gc.collect(0)
        return report

    known = [
        None if (entries := kept.get(id(file.options))) is None else entries.get(file.path, file.data)
        for file in loading.files
    ]
    unknown = [file for file, report in zip(loading.files, known) if report is None]
    found = iter(for_each(look, unknown, _lost, weight=lambda file: len(file.data)))
    return [next(found) if report is None else report for report in known]


def _lost(file: _Loaded) -> FileReport:
    died = "gradfix crashed on this file, or ran out of memory"
    return FileReport(file.path, problems=(Problem(file.path, died, "internal-error"),))


def _look(file: _Loaded, *, with_fixes: bool) -> FileReport:
    """The findings in one file, with or without the choice of a fix for each."""
    options = file.options
    parsed = source.parse(file.path, file.data, options.settings.max_file_size)
    if isinstance(parsed, Problem):
        return FileReport(file.path, problems=(parsed,))
    if parsed.notebook is not None and parsed.notebook.remark:
        return FileReport(file.path, notes=(parsed.notebook.remark,))
    if not source.can_matter(file.data):
        return FileReport(file.path)
    analysis = analyse(parsed, options, options.selected)
    findings = reported_by(analysis, options)
    reported = tuple(Reported(finding) for finding in findings)
    problems = analysis.problems
    unseen, unknown = _not_known(analysis)
    told = parsed.layout.words
    notes = [f"{told(line)}: {why}" for line, why in sorted(idle_suppressions(analysis, options))]
    if with_fixes and any(finding.fixes for finding in findings):
        try:
            reported = tuple(filter(_worth_telling, choose_fixes(analysis, findings, options, notes)))
        except Exception as error:
            problems += (problem_of(file.path, "the choice of a fix", error),)
    messages = analysis.messages
    if analysis.program is not None:
        messages = analysis.program.messages  # The choice of a fix may have asked for further runs.
    analysis.release()
    return FileReport(
        file.path,
        parsed.text,
        reported,
        problems,
        messages,
        tuple(notes),
        unseen,
        unknown,
        _file_of(parsed) if reported else "",
    )


def _file_of(parsed: Source) -> str:
    """The text of the file itself, where the source is not that."""
    return "" if parsed.notebook is None else parsed.notebook.text


def _not_known(analysis: Analysis) -> tuple[tuple[Unanalysed, ...], tuple[UnknownFunction, ...]]:
    """Where nothing can be found, and the functions of torch of which nothing is known."""
    if analysis.program is None:
        return (), ()
    from gradfix.autograd.unanalysed import unanalysed, unknown_functions

    return unanalysed(analysis.program), unknown_functions(analysis.program)


def _worth_telling(reported: Reported) -> bool:
    """Whether there is anything to do about a finding: wasted work that cannot be saved is no mistake."""
    fixes = reported.finding.fixes
    return reported.fix is not None or not fixes or any(f.effect is not Effect.PRESERVES for f in fixes)


def plan(paths: Sequence[str], options: Options) -> Plan:
    """What is to be written for ``paths``: for every file the fixes that hold. Nothing is written here."""
    loading = _load(paths, options)
    reports = _reports(paths, loading, with_fixes=False)
    with_content = [(file, report) for file, report in zip(loading.files, reports) if not report.silent]
    repairable = [file for file, report in with_content if any(one.finding.fixes for one in report.findings)]
    fixable = len(repairable)
    equipped = with_environments([(file.path, file.options) for file in repairable])
    chosen = {file.path: one for file, one in zip(repairable, equipped)}
    with servers_kept() if options.verify and fixable else nullcontext():
        progress.of(len(with_content))
        files = for_each(
            lambda one: _plan_file(*one, chosen.get(one[0].path, one[0].options)),
            with_content,
            lambda one: FilePlan(
                one[0].path, one[0].data, one[0].data, one[1].text, problems=_lost(one[0]).problems
            ),
            done=progress.one_more,
            worth=WORTH_SERVERS if options.verify and fixable >= WORTH_SERVERS else WORTH_PROCESSES,
        )
    return Plan(tuple(files), loading.problems, loading.checked, loading.empty)


WORTH_SERVERS = 6
"""From so many files with fixes on, each processor imports torch for itself, which takes 1 to 2 s."""


def _plan_file(file: _Loaded, report: FileReport, options: Options) -> FilePlan:
    parsed = source.parse(file.path, file.data, options.settings.max_file_size) if report.findings else None
    unchanged = FilePlan(file.path, file.data, file.data, report.text, remaining=report.findings)
    try:
        with time_budget(options) if options.verify and parsed is not None else nullcontext():
            repaired = repair(parsed, options) if isinstance(parsed, Source) else unchanged
    except Exception as error:
        repaired = unchanged._replace(problems=(problem_of(file.path, "the rewriting", error),))
    return repaired._replace(
        problems=report.problems + repaired.problems,
        messages=report.messages,
        unanalysed=report.unanalysed,
        unknown_functions=report.unknown_functions,
    )


def repair(parsed: Source, options: Options) -> FilePlan:
    """Apply one fix after the other to ``parsed``, each proved before the next is chosen.

    A fix is chosen on the text that those before it have left, so fixes never conflict, and each
    leaves fewer findings than there were, so it ends. One that is refuted is left out; it is tried
    again when others have been applied.
    """
    analysis = analyse(parsed, options)
    if not parsed.lossless:
        lossy = Problem(parsed.path, f"cannot be rewritten: {parsed.encoding} does not give its bytes back")
        left = tuple(Reported(finding) for finding in reported_by(analysis, options))
        return FilePlan(parsed.path, parsed.data, parsed.data, parsed.text, (), left, (lossy,))
    tally = Tally(analysis, options)
    repaired, attempts = _apply_in_turn(analysis, options, tally)
    # A fix that is left was refuted, did not do, or needs leave: only the last are still on offer.
    remaining = tuple(
        choose_fix(
            repaired,
            finding,
            [fix for fix in finding.fixes_by(options.way) if not is_allowed(fix, options)],
            options,
        )
        for finding in reported_by(repaired, options)
    )
    remaining = tuple(_left(one, options) for one in remaining)
    # What running it has refuted is told, and so is its finding.
    refused = {attempt.finding.code for attempt in attempts if not attempt.applied}
    proxy_calls = repaired.program.proxy_calls() if repaired.program is not None else ()
    remaining = tuple(
        one
        for one in remaining
        if one.finding.code in refused
        or one.left
        or (_worth_telling(one) and (one.fix is not None or not is_elsewhere(one.finding, proxy_calls)))
    )
    result = repaired.source
    hidden = tuple(one.now for one in tally.hidden)
    return FilePlan(parsed.path, parsed.data, result.data, result.text, attempts, remaining, hidden=hidden)


def _left(reported: Reported, options: Options) -> Reported:
    """``reported``, with the reason if it is left alone since it cannot be repaired in the way asked for."""
    way, admits = options.way, reported.finding.available_ways
    if way is None or reported.fix is not None or not admits:
        return reported
    if way in admits:
        return reported._replace(left=f"left alone: `--way {way}` does not repair it here")
    others = " or ".join(f"`--way {one}`" for one in admits)
    return reported._replace(left=f"left alone: `--way {way}` does not apply to it, only {others}")


def _apply_in_turn(
    analysis: Analysis, options: Options, tally: Tally
) -> tuple[Analysis, tuple[Attempt, ...]]:
    """The file after every fix that holds, and all attempts: the applied ones, then the refuted ones."""
    applied: list[Attempt] = []
    refuted: dict[FixKey, Attempt] = {}
    tried: set[FixKey] = set()
    number = 0
    advanced = False
    while True:
        candidate = next((found for found in _candidates(analysis, options) if found.key not in tried), None)
        if candidate is None:
            if not advanced:
                return analysis, (*applied, *refuted.values())
            # What did not do before may do for the text as it is now: of two mistakes that raise,
            # only the fix for the one that raises first can be proved while both are there.
            tried, advanced = set(), False
            continue
        tried.add(candidate.key)
        after = resolve(analysis, candidate.finding, candidate.fix, options)
        if after is None:
            continue
        attempt = prove(analysis, candidate, after, options)._replace(
            also=tally.also(analysis, candidate.finding, after),
            asked_for=tally.counts(candidate.finding),
            shown=placed(candidate.finding, candidate.fix, analysis.source.tree),
        )
        if options.attempted is not None and attempt.evidence is not None:
            number += 1
            options.attempted(analysis.source.path, number, attempt)
        if options.compare and attempt.applied:
            attempt = attempt._replace(ways=tuple(_other_ways(analysis, candidate, options)))
        if attempt.applied:
            applied.append(attempt)
            refuted.pop(candidate.key, None)
            tally.go_on(analysis, candidate.finding, attempt.also, after)
            analysis, advanced = after, True
        else:
            refuted[candidate.key] = attempt


def _other_ways(before: Analysis, candidate: Candidate, options: Options) -> Iterator[Attempt]:
    """The repairs of the same finding in the other ways that it admits, each proved as if it were applied."""
    finding = candidate.finding
    for way in finding.available_ways:
        for fix in finding.fixes_by(way) if way is not candidate.fix.way else ():
            after = resolve(before, finding, fix, options) if is_allowed(fix, options) else None
            if after is not None:
                yield prove(
                    before, Candidate((*candidate.key[:3], fix.message), finding, fix), after, options
                )
                break


def offers(parsed: Source, options: Options) -> Iterator[tuple[Attempt, Source]]:
    """Every fix that ``repair`` could apply to ``parsed`` next, in order, with the file after it.

    Nothing is run. A rewrite that was made elsewhere is one of gradfix's own only if it is among these.
    """
    analysis = analyse(parsed, options)
    for candidate in _candidates(analysis, options):
        after = resolve(analysis, candidate.finding, candidate.fix, options)
        if after is not None:
            text = after.source.text
            found = Attempt(candidate.finding, candidate.fix, parsed.text, text, Outcome.UNVERIFIED)
            yield found, after.source


def findings(parsed: Source, options: Options) -> tuple[Finding, ...]:
    """What the selected codemods report of ``parsed`` and no comment silences. Nothing is run."""
    return tuple(reported.finding for reported in file_report(parsed, options).findings)


def file_report(parsed: Source, options: Options) -> FileReport:
    """The same, with what has kept the analysis from seeing all of the file."""
    analysis = analyse(parsed, options, options.selected)
    found = tuple(Reported(finding) for finding in reported_by(analysis, options))
    report = FileReport(parsed.path, parsed.text, found, analysis.problems, analysis.messages)
    return report._replace(notebook=_file_of(parsed) if found else "")


def _candidates(analysis: Analysis, options: Options) -> Iterator[Candidate]:
    """Every fix that may be applied, in order."""
    for key, finding in by_key(analysis, options).items():
        alike: Counter[str] = Counter()  # What is said of several fixes does not tell them apart.
        for fix in finding.fixes_by(options.way):
            if is_allowed(fix, options):
                name = f"{fix.message} #{alike[fix.message]}"
                alike[fix.message] += 1
                yield Candidate((*key, name), finding, fix)


def write(planned: Plan) -> Plan:
    """Write every file of the plan; one that cannot be written is a problem and keeps its bytes.

    What they hold before is kept first, so that :mod:`gradfix.pipeline.journal` can take it all back.
    """
    from gradfix.pipeline import journal
    from gradfix.system import files

    applied = [file for file in planned.files if file.applied]
    if not applied:
        return planned
    interrupts.check()
    try:
        with interrupts.whole():
            kept = journal.record((file.path, file.before, file.after) for file in applied)
    except OSError as error:
        kept, planned = None, replace(planned, unkept=files.describe_error(error, "cannot be kept"))
    written = replace(planned, files=tuple(_written(planned.files)))
    if kept is not None:
        with suppress(OSError):  # It says more than it has to, then.
            journal.keep(kept, {os.path.realpath(file.path) for file in written.files if file.written})
    return written


def _written(files: Sequence[FilePlan]) -> Iterator[FilePlan]:
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


def _write(file: FilePlan) -> FilePlan:
    if not file.applied:
        return file
    problem = configuration.replace(file.path, file.before, file.after)
    if problem is not None:
        return file._replace(problems=(*file.problems, problem))
    return file._replace(written=True)


def patch(planned: Plan) -> Patch | Problem:
    """The patch for every file of the plan; a problem if one of them cannot be told as a patch."""
    return patch_of((file.path, file.before, file.after) for file in planned.files if file.applied)


def patch_of(changes: Iterable[tuple[str, bytes, bytes]]) -> Patch | Problem:
    """The patch for files by their paths, each with its bytes before and after."""
    from gradfix.rewriting import patch as patches

    files = {os.path.realpath(path): (before, after) for path, before, after in changes}
    here = os.path.realpath(os.curdir)
    folder = here if all(path.startswith(os.path.join(here, "")) for path in files) else _folder_of(files)
    contents = {
        os.path.relpath(path, folder).replace(os.sep, "/"): texts for path, texts in sorted(files.items())
    }
    data = patches.combine(patches.unified_diff(path, *texts) for path, texts in contents.items())
    wrong = patches.check(data, contents)
    if wrong:
        return Problem(folder, wrong, "internal-error")
    return Patch(data, folder, patches.combine(readable(path, *texts) for path, texts in contents.items()))


def readable(path: str, before: bytes, after: bytes) -> bytes:
    """What has changed in a file, as a patch for people: of a notebook, cell by cell."""
    from gradfix.rewriting import patch as patches

    if not source.is_notebook(path):
        return patches.unified_diff(path, before, after)
    from gradfix.project import notebooks

    versions = [notebooks.read(data.decode("utf-8-sig")) for data in (before, after)]
    changes = [
        patches.unified_diff(
            f"{path}:cell {old.number}", f"{old.source}\n".encode(), f"{new.source}\n".encode()
        )
        for old, new in zip(*(notebook.cells for notebook in versions))
    ]
    # The tab behind names with blanks is for git, which these are not for.
    return patches.combine(change.replace(b"\t\n", b"\n", 2) for change in changes)


def _folder_of(files: Iterable[str]) -> str:
    return os.path.commonpath([os.path.dirname(file) for file in files])
