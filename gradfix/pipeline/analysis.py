"""One version of a file under the model and the codemods: what is found and what is reported."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradfix.core.codemod import Codemod, Finding, Fix, severity_of
from gradfix.core.span import Span
from gradfix.pipeline.options import Options
from gradfix.pipeline.placing import placed
from gradfix.project.configuration import near_miss
from gradfix.project.source import Problem, Source

if TYPE_CHECKING:
    from gradfix.autograd.program import Program
    from gradfix.pipeline.fingerprints import Identity


class Analysis(NamedTuple):
    """What the codemods say of one version of a file."""

    source: Source
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()
    program: Program | None = None

    def release(self) -> None:
        """Release the model's runs, when this version is not needed any more."""
        if self.program is not None:
            self.program.release()


def analyse(parsed: Source, options: Options, names: Collection[str] | None = None) -> Analysis:
    """Run the model and the codemods on ``parsed``; what fails is a problem of this file alone."""
    program = run_model(parsed)
    if isinstance(program, Problem):
        return Analysis(parsed, (), (program,))
    return run_codemods(parsed, program, options, names)


def run_model(parsed: Source, keys: Collection[tuple[str, str]] | None = None) -> Program | Problem:
    """What the model makes of ``parsed``: from all entry points, or from those of ``keys``."""
    from gradfix.autograd.program import analyze

    try:
        return analyze(parsed.tree, parsed.text, Path(parsed.path), keys)
    except Exception as error:
        return problem_of(parsed.path, "the analysis", error)


def run_codemods(
    parsed: Source, program: Program, options: Options, names: Collection[str] | None = None
) -> Analysis:
    """Ask the codemods (those of ``names``, or all) about ``program``."""
    findings: list[Finding] = []
    problems: list[Problem] = []
    versions = [program]
    try:
        versions += program.under_assumption()
    except Exception as error:
        problems.append(problem_of(parsed.path, "the analysis under assumptions", error))
    for codemod in options.catalog.codemods:
        if names is not None and codemod.name not in names:
            continue
        try:
            for version in versions:
                findings += [_told(one, codemod, version, parsed) for one in codemod.find(version)]
        except Exception as error:
            problems.append(problem_of(parsed.path, f"the codemod {codemod.name}", error))
    # What lies in an imported module has no place in this file, unless it can be mended here.
    proxy_calls, unwritten = program.proxy_calls(), program.calls_of_frameworks()
    reported: dict[tuple[str, Span, str], Finding] = {}
    certain = {(one.code, one.span) for one in findings if not one.assumption}
    for finding in findings:
        finding = finding._replace(fixes=tuple(fix for fix in finding.fixes if not _edits(fix, unwritten)))
        if finding.assumption and (finding.code, finding.span) in certain:
            continue
        if finding.span.line > 0 and (finding.fixes or not is_elsewhere(finding, proxy_calls)):
            notes = tuple(note for note in finding.notes if note.span.line > 0)
            # A mistake may show from more than one entry point.
            reported.setdefault((finding.code, finding.span, finding.message), finding._replace(notes=notes))
    ordered = sorted(reported.values(), key=lambda finding: (finding.span, finding.code))
    return Analysis(parsed, tuple(ordered), tuple(problems), program.messages, program)


def _told(finding: Finding, codemod: Codemod, program: Program, parsed: Source) -> Finding:
    """``finding`` of a codemod, complete: with its advice, how bad it is, and what it assumes."""
    severity = severity_of(finding, codemod.severity)
    finding = finding._replace(advice=finding.advice or codemod.by_hand, severity=severity)
    return _worded(finding.assuming(program.assumption) if program.assumption else finding, parsed)


def _worded(finding: Finding, parsed: Source) -> Finding:
    """``finding``, with lines named as people count them."""
    if parsed.notebook is None:
        return finding
    said = parsed.layout.reworded
    return finding._replace(
        message=said(finding.message),
        notes=tuple(note._replace(message=said(note.message)) for note in finding.notes),
        fixes=tuple(fix._replace(message=said(fix.message)) for fix in finding.fixes),
        ways=tuple(fix._replace(message=said(fix.message)) for fix in finding.ways),
    )


def _edits(fix: Fix, places: Collection[Span]) -> bool:
    """Whether a fix changes what stands at one of some places."""
    return any(getattr(edit, "span", None) in places for edit in fix.edits)


def is_elsewhere(finding: Finding, proxy_calls: Collection[Span]) -> bool:
    """Whether a finding or one of its notes is about code in an imported module."""
    return finding.span in proxy_calls or any(note.span in proxy_calls for note in finding.notes)


def problem_of(path: str, what: str, error: Exception) -> Problem:
    """That ``what`` has failed on a file, and where."""
    if isinstance(error, RecursionError):
        return Problem(path, f"is nested too deeply for {what}", "internal-error")
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" ({os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno})" if place else ""
    return Problem(path, f"{what} failed: {type(error).__name__}: {error}{where}", "internal-error")


def reported_by(analysis: Analysis, options: Options) -> tuple[Finding, ...]:
    """The findings of the selected codemods that are severe enough, and neither silenced nor known."""
    return split_by_baseline(analysis, options)[0]


def split_by_baseline(
    analysis: Analysis, options: Options
) -> tuple[tuple[Finding, ...], tuple[Identity, ...]]:
    """The same, and what the findings are recognised by that a baseline holds, and that are known by it."""
    names = options.reporting_in(analysis.source.path)
    found = tuple(
        finding
        for finding in analysis.findings
        if finding.code in names
        and (finding.severity is None or finding.severity.is_at_least(options.min_severity))
        and not (options.certain and finding.assumption)
        and not _silenced(finding, analysis.source)
    )
    if options.baseline is None:
        return found, ()
    new, known = options.baseline.split(found, analysis.source)
    return tuple(new), tuple(known)


def _silenced(finding: Finding, parsed: Source) -> bool:
    """Whether a comment silences a finding: where it is found, or where it is told."""
    reported = [finding, *(placed(finding, fix, parsed.tree) for fix in finding.fixes)]
    return any(parsed.suppressed(one.code, one.span) for one in reported)


def idle_suppressions(analysis: Analysis, options: Options) -> Iterator[tuple[int, str]]:
    """``(line, why)`` of the comments that silence nothing.

    Of a codemod that has not been asked nothing is known, and neither is anything where one has failed.
    """
    parsed = analysis.source
    comments = parsed.suppressions
    yield from comments.without_effect
    needed: set[tuple[int, str]] = set()
    for finding in analysis.findings if comments.by_line else ():
        for one in (finding, *(placed(finding, fix, parsed.tree) for fix in finding.fixes)):
            needed |= {(line, one.code) for line in parsed.lines_that_speak_for(one.span)}
    for line, names in comments.by_line:
        for name in sorted(names or ()):
            if name not in options.catalog.names:
                yield line, f"there is no codemod {name!r}{near_miss(name, options.catalog.names)}"
            elif name in options.selected and (line, name) not in needed and not analysis.problems:
                yield line, f"`ignore[{name}]` silences nothing"
        whole = names is None and options.selected == options.catalog.names and not analysis.problems
        if whole and not any(at == line for at, _ in needed):
            yield line, "`ignore` silences nothing"


def identity_of(finding: Finding, analysis: Analysis) -> tuple[str, str]:
    """What tells a finding from others wherever its line has moved: its code, and the text of the line."""
    return finding.code, analysis.source.lines[finding.span.line - 1].strip()


FindingKey = tuple[str, str, int]


def by_key(analysis: Analysis, options: Options) -> dict[FindingKey, Finding]:
    """The findings, under names that outlive changes elsewhere in the file."""
    seen: dict[tuple[str, str], int] = {}
    keyed: dict[FindingKey, Finding] = {}
    for finding in reported_by(analysis, options):
        identity = identity_of(finding, analysis)
        ordinal = seen[identity] = seen.get(identity, -1) + 1
        keyed[*identity, ordinal] = finding
    return keyed
