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
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradfix.core.codemod import Effect, Finding
from gradfix.core.coverage import Coverage
from gradfix.pipeline import asking, choosing, proof_times, writing
from gradfix.pipeline.analysis import (
    Analysis,
    analyse,
    by_key,
    idle_suppressions,
    is_elsewhere,
    problem_of,
    reported_by,
    split_by_baseline,
)
from gradfix.pipeline.choosing import choose_fix, choose_fixes, is_allowed, resolve
from gradfix.pipeline.mended import Tally
from gradfix.pipeline.options import Options, Refusal, RequestedOptions, prepare
from gradfix.pipeline.placing import placed
from gradfix.pipeline.proof_times import ProofTimes
from gradfix.pipeline.proving import Candidate, FixKey, prove, servers_kept, time_budget, with_environments
from gradfix.pipeline.results import (
    Attempt,
    FilePlan,
    FileReport,
    Outcome,
    Outdated,
    Patch,
    Plan,
    Report,
    Reported,
    Shortfall,
    WrittenBaseline,
)
from gradfix.project import configuration, source, traces
from gradfix.project.source import Problem, Source
from gradfix.system import files, progress
from gradfix.system.parallel import WORTH_PROCESSES, for_each

if TYPE_CHECKING:
    from gradfix.core.codemod import UnknownFunction
    from gradfix.core.coverage import TrainingStep
    from gradfix.pipeline import baseline
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
    "write_baselines",
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
    listed: tuple[tuple[str, Options], ...]
    """All that were looked at, each with the options under its own configuration."""


def _load(paths: Sequence[str], options: Options) -> _Loading:
    traces.look_again()
    listing = options.files(paths)
    problems = [*options.catalog.problems, *listing.problems]
    loaded: list[_Loaded] = []
    under = {settings: options.under(settings) for settings in {one.settings for one in listing.files}}
    for listed in listing.files:
        own = under[listed.settings]
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
    looked_at = tuple(
        (one.path, own) for one in listing.files if isinstance(own := under[one.settings], Options)
    )
    every = tuple(dict.fromkeys(problems))
    return _Loading(tuple(loaded), every, len(listing.files), listing.empty, looked_at)


def check(paths: Sequence[str], options: Options) -> Report:
    """The findings in ``paths``, each with the fix that ``apply`` would choose for it."""
    loading = _load(paths, options)
    reports = _reports(paths, loading, with_fixes=True)
    with_content = tuple(report for report in reports if not report.silent)
    return Report(
        with_content,
        loading.problems,
        loading.checked,
        loading.empty,
        tuple(_outdated(_looked_at(loading, reports), loading.listed)),
        shortfalls(with_content, dict(loading.listed)),
    )


def shortfalls(reports: Sequence[FileReport], options: Mapping[str, Options]) -> tuple[Shortfall, ...]:
    """Where fewer training steps were followed than the ``options`` of the files ask for.

    What the command line asks for is asked of all files together, and what a configuration asks for of all
    those that are under it.
    """
    asked: dict[tuple[int, str], list[TrainingStep]] = {}
    for report in reports:
        own = options[report.path]
        key = own.min_coverage, "" if own.asks_for_coverage else own.settings.file or ""
        asked.setdefault(key, []).extend(report.training_steps)
    counted = ((*key, Coverage.of(steps)) for key, steps in asked.items())
    return tuple(Shortfall(*one) for one in counted if 100 * one[2].covered < one[0] * one[2].total)


def write_baselines(paths: Sequence[str], options: Options) -> tuple[Report, list[WrittenBaseline]]:
    """Write what is found in ``paths`` to the baselines that hold for them; the findings, and the baselines.

    What they hold of files that were not looked at, and of codemods that were not asked, stays.
    """
    from gradfix.pipeline import baseline

    loading = _load(paths, options)
    reports = _reports(paths, loading, with_fixes=True)
    looked = _looked_at(loading, reports)
    by_file: dict[str | None, list[baseline.Looked]] = {}
    for path, own in loading.listed:
        by_file.setdefault(own.baseline_file, []).append(looked[path])
    written: list[WrittenBaseline] = []
    problems: list[Problem] = []
    for file, those in by_file.items():
        found = sum(len(one.findings) for one in those)
        if file is None:
            if found:
                why = "is under no baseline: name one with --baseline, or in the configuration"
                problems.append(Problem(next(one.path for one in those if one.findings), why))
            continue
        old = baseline.load(file) if os.path.lexists(file) else baseline.empty(file)
        entries = [] if isinstance(old, Problem) else baseline.renewed(old, those)
        problem = old if isinstance(old, Problem) else baseline.save(old, entries)
        if problem is None:
            written.append(WrittenBaseline(file, sum(one.number for one in entries)))
        else:
            problems.append(problem)
    with_content = tuple(report for report in reports if not report.silent)
    every = (*loading.problems, *problems)
    return Report(with_content, every, loading.checked, loading.empty), written


def _looked_at(loading: _Loading, reports: Sequence[FileReport]) -> dict[str, baseline.Looked]:
    """What was found in each file, as a baseline is held against it."""
    from gradfix.pipeline import baseline

    found = {report.path: report for report in reports}
    failed = {problem.path for problem in loading.problems}
    looked = {}
    for path, own in loading.listed:
        report = found.get(path, FileReport(path))
        looked[path] = baseline.Looked(
            path,
            report.text,
            tuple(one.finding for one in report.findings),
            report.known,
            own.reporting_in(path),
            own.min_severity,
            bool(report.problems) or path in failed,
        )
    return looked


def _outdated(
    looked: Mapping[str, baseline.Looked], listed: Sequence[tuple[str, Options]]
) -> Iterator[Outdated]:
    """What the baselines hold and is not found any more."""
    baselines = {own.baseline.file: own.baseline for _, own in listed if own.baseline is not None}
    for file, held in baselines.items():
        from gradfix.pipeline import baseline

        those = [looked[path] for path, own in listed if own.baseline_file == file]
        for one in baseline.outdated(held, those):
            yield Outdated(file, one.filename, one.identity.code, one.identity.line, one.number)


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
    kept: dict[configuration.Settings, Cache | None] = {}
    if any(file.options.cached for file in loading.files):
        from gradfix.pipeline import cache

        repository = configuration.repository(paths)
        by_settings = {file.options.settings: file.options for file in loading.files}
        kept = {
            settings: cache.open_for(one, repository, with_fixes=with_fixes)
            for settings, one in by_settings.items()
        }

    def look(file: _Loaded) -> FileReport:
        with traces.on_behalf_of(os.path.abspath(file.path)):
            report = _look(file, with_fixes=with_fixes)
        if (entries := kept.get(file.options.settings)) is not None:
            entries.put(file.path, file.data, report)
        if gc.isenabled() and gc.get_count()[0] > GARBAGE:
            gc.collect(0)
        return report

    known = [
        None if (entries := kept.get(file.options.settings)) is None else entries.get(file.path, file.data)
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
    findings, known = split_by_baseline(analysis, options)
    reported = tuple(Reported(finding) for finding in findings)
    problems = analysis.problems
    steps: tuple[TrainingStep, ...] = ()
    unknown: tuple[UnknownFunction, ...] = ()
    try:
        steps, unknown = _followed(analysis)
    except Exception as error:
        problems += (problem_of(file.path, "the account of training steps", error),)
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
        steps,
        unknown,
        known,
        _file_of(parsed) if reported else "",
    )


def _file_of(parsed: Source) -> str:
    """The text of the file itself, where the source is not that."""
    return "" if parsed.notebook is None else parsed.notebook.text


def _followed(analysis: Analysis) -> tuple[tuple[TrainingStep, ...], tuple[UnknownFunction, ...]]:
    """The training steps, each with how far it was followed, and the functions of torch that nobody knows."""
    from gradfix.autograd.training_steps import training_steps, unknown_functions

    if analysis.program is None:
        from gradfix.autograd.program import Program

        parsed = analysis.source
        nothing = Program(parsed.tree, parsed.text, Path(parsed.path))
        return training_steps(nothing, "gradfix failed on this file"), ()
    return training_steps(analysis.program), unknown_functions(analysis.program)


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
    if options.interactive is not None:
        return _plan_interactively(loading, with_content, chosen, options)
    times = proof_times.opened(paths) if options.verify and options.cached else ProofTimes(None)
    if options.time_limit is not None:
        with_content.sort(key=lambda one: times.order(one[0].path, one[0].data, one[1]))

    among = {os.path.realpath(path) for path in chosen}

    def planned(one: tuple[_Loaded, FileReport]) -> _Planned:
        file, report = one
        begun = time.monotonic()
        made = _plan_file(file, report, chosen.get(file.path, file.options))
        times.keep(made, time.monotonic() - begun)
        return _Planned(made, _dependencies(file, among) if made.attempts else frozenset())

    with servers_kept() if options.verify and fixable else nullcontext():
        progress.of(len(with_content))
        made = for_each(
            planned,
            with_content,
            lambda one: _Planned(
                FilePlan(one[0].path, one[0].data, one[0].data, one[1].text, problems=_lost(one[0]).problems)
            ),
            done=progress.one_more,
            worth=WORTH_SERVERS if options.verify and fixable >= WORTH_SERVERS else WORTH_PROCESSES,
        )
        by_path = {file.path: file for file in loading.files}

        def again(path: str) -> FilePlan:
            file = by_path[path]
            return _plan_file(file, _look(file, with_fixes=False), chosen.get(path, file.options))

        plans = _one_after_the_other(made, again)
    in_order = tuple(plans[path] for path in by_path if path in plans)
    return Plan(in_order, loading.problems, loading.checked, loading.empty)


class _Planned(NamedTuple):
    """The plan of a file by itself, as if nothing else were rewritten."""

    plan: FilePlan
    looks_at: frozenset[str] = frozenset()
    """The other files with fixes that it depends on, by their real paths."""


def _dependencies(file: _Loaded, among: Collection[str]) -> frozenset[str]:
    """Those of the files ``among`` that the file depends on: what it imports, and what imports it."""
    own = os.path.realpath(file.path)
    options = file.options
    if options.verify and (options.script or options.module or options.settings.verify.command):
        return frozenset(among) - {own}  # All are run by one program, say.
    led = {os.path.realpath(path) for path in traces.led_to(os.path.abspath(file.path))}
    return frozenset(led & set(among) - {own})


def _one_after_the_other(
    planned: Sequence[_Planned], again: Callable[[str], FilePlan]
) -> dict[str, FilePlan]:
    """The plan of each file, with those before it rewritten already: by path.

    So what is written together has been looked at, and run, together. A file that depends on one that is
    rewritten before it is planned ``again``; what it imports comes before it. Last come the files in which
    nothing has held yet: what raised elsewhere may have kept it from being proved.
    """
    from gradfix.autograd import imports

    plans = {one.plan.path: one.plan for one in planned}
    contents: dict[str, bytes] = {}
    for holds in (True, False):
        waiting = {
            os.path.realpath(one.plan.path): one
            for one in planned
            if one.plan.attempts and bool(one.plan.applied) is holds
        }
        while waiting:
            free = (path for path, one in waiting.items() if not one.looks_at & waiting.keys())
            path = next(free, next(iter(waiting)))
            plan, looks_at = waiting.pop(path)
            if others := {one: contents[one] for one in looks_at & contents.keys()}:
                with files.rewritten(others):
                    imports.forget()
                    plan = plans[plan.path] = again(plan.path)
                imports.forget()
            if plan.applied:
                contents[path] = plan.after
    return plans


def _plan_interactively(
    loading: _Loading,
    with_content: Sequence[tuple[_Loaded, FileReport]],
    chosen: Mapping[str, Options],
    options: Options,
) -> Plan:
    """The same, written already as far as it was accepted, file after file."""
    assert options.interactive is not None
    with servers_kept() if options.verify else nullcontext():
        plans = [
            _plan_file(file, report, chosen.get(file.path, file.options)) for file, report in with_content
        ]
    return Plan(
        tuple(plans), loading.problems, loading.checked, loading.empty, unkept=options.interactive.unkept
    )


WORTH_SERVERS = 6
"""From so many files with fixes on, each processor imports torch for itself, which takes 1 to 2 s."""


def _plan_file(file: _Loaded, report: FileReport, options: Options) -> FilePlan:
    over = options.interactive is not None and options.interactive.over
    wanted = bool(report.findings) and not over
    parsed = source.parse(file.path, file.data, options.settings.max_file_size) if wanted else None
    unchanged = FilePlan(file.path, file.data, file.data, report.text, remaining=report.findings)
    try:
        with (
            _time_budget(options) if parsed is not None and options.interactive is None else nullcontext(),
            traces.on_behalf_of(os.path.abspath(file.path)),
        ):
            repaired = repair(parsed, options) if isinstance(parsed, Source) else unchanged
    except Exception as error:
        repaired = unchanged._replace(problems=(problem_of(file.path, "the rewriting", error),))
    return repaired._replace(
        problems=report.problems + repaired.problems,
        messages=report.messages,
        training_steps=report.training_steps,
        unknown_functions=report.unknown_functions,
    )


def _time_budget(options: Options) -> AbstractContextManager[None]:
    return time_budget(options) if options.verify else nullcontext()


def repair(parsed: Source, options: Options) -> FilePlan:
    """Apply one fix after the other to ``parsed``, each proved before the next is chosen.

    A fix is chosen on the text that those before it have left, so fixes never conflict, and each
    leaves fewer findings than there were, so it ends. One that is refuted is left out; it is tried
    again when others have been applied.
    """
    analysis = analyse(parsed, options)
    if not parsed.lossless:
        left = tuple(Reported(finding) for finding in reported_by(analysis, options))
        return FilePlan(parsed.path, parsed.data, parsed.data, parsed.text, (), left, (parsed.lossy,))
    tally = Tally(analysis, options)
    talk = None if options.interactive is None else asking.Conversation(options.interactive, parsed.path)
    repaired, attempts = _apply_in_turn(analysis, options, tally, talk)
    # A fix that is left was refuted, did not do, or needs leave: only the last are still on offer.
    remaining = tuple(
        choose_fix(
            repaired,
            finding,
            # Of a conversation the findings are left, too, that somebody has skipped.
            [
                fix
                for fix in finding.fixes_by(options.way)
                if talk is not None or not is_allowed(fix, options)
            ],
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
    made = FilePlan(parsed.path, parsed.data, result.data, result.text, attempts, remaining, hidden=hidden)
    return made if talk is None else _asked_about_the_rest(made, result, talk, options)


def _asked_about_the_rest(
    made: FilePlan, now: Source, talk: asking.Conversation, options: Options
) -> FilePlan:
    """``made``, with comments where somebody wants findings silenced for which no fix can be accepted."""
    hopeless = [one for one in made.remaining if one.fix is None or not is_allowed(one.fix, options)]
    now, left = talk.about_the_rest(now, hopeless)
    return made._replace(
        after=now.data,
        text=now.text,
        remaining=tuple(one for one in made.remaining if one in left or one not in hopeless),
        problems=() if talk.problem is None else (talk.problem,),
        written=talk.written,
        silenced=talk.silenced,
    )


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
    analysis: Analysis, options: Options, tally: Tally, talk: asking.Conversation | None
) -> tuple[Analysis, tuple[Attempt, ...]]:
    """The file after every fix that holds, and all attempts: the applied ones, then the refuted ones."""
    applied: list[Attempt] = []
    refuted: dict[FixKey, Attempt] = {}
    tried: set[FixKey] = set()
    late: set[tuple[str, str, int]] = set()
    """The findings of which one fix was not proved in time: then none is."""
    number = 0
    advanced = False
    while True:
        if talk is not None and talk.over:
            return analysis, (*applied, *refuted.values())
        candidates = (one for one in _candidates(analysis, options) if one.key[:3] not in late)
        candidate = next((found for found in candidates if found.key not in tried), None)
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
        if talk is not None:
            answer = talk.about(analysis, candidate, after, options)
            if answer is None:
                continue
            if isinstance(answer, asking.Silenced):
                tally.go_on(analysis, candidate.finding, (), answer.after)
                tried.discard(candidate.key)
                analysis, advanced = answer.after, True
                continue
            candidate, after = answer
        with nullcontext() if talk is None else _time_budget(options):
            attempt = prove(analysis, candidate, after, options)
        if attempt.out_of_time and candidate.key in refuted:
            continue  # What running it has shown before still counts.
        if attempt.out_of_time and not attempt.applied:
            late.add(candidate.key[:3])
        attempt = attempt._replace(
            also=tally.also(analysis, candidate.finding, after),
            asked_for=tally.counts(candidate.finding),
            shown=placed(candidate.finding, candidate.fix, analysis.source.tree),
        )
        if options.attempted is not None and attempt.evidence is not None:
            number += 1
            options.attempted(analysis.source.path, number, attempt)
        if options.compare and attempt.applied:
            attempt = attempt._replace(ways=tuple(_other_ways(analysis, candidate, options)))
        if attempt.applied and talk is not None:
            if talk.write_fix(candidate, analysis.source, after.source):
                tried.discard(candidate.key)  # It names the next finding on an equal line now.
            else:
                attempt = attempt._replace(withheld=True)  # The file has changed meanwhile, say.
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


def other_fixes(parsed: Source, chosen: Reported, options: Options) -> Iterator[Reported]:
    """A finding of :func:`check_text` with each further fix that it has, those of other ways among them."""
    return choosing.other_fixes(analyse(parsed, options), chosen, options)


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
    """Write every file of the plan; one that cannot be written is a problem and keeps its bytes."""
    applied = [file for file in planned.files if file.applied]
    done = writing.write([writing.Change(file.path, file.before, file.after) for file in applied])
    results = iter(done.problems)
    return replace(
        planned,
        files=tuple(_written(file, next(results)) if file.applied else file for file in planned.files),
        unkept=done.unkept,
    )


def _written(file: FilePlan, problem: Problem | None) -> FilePlan:
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
