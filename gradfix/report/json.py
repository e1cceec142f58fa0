"""Findings in the shape of ruff's JSON, and rewrites with their evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradfix.core.codemod import Codemod, Severity
from gradfix.core.span import Span
from gradfix.pipeline import certificate
from gradfix.pipeline.results import Attempt, Count, FilePlan, FileReport, Judged, Plan, Report, Reported
from gradfix.project.source import Problem, character_column, split_lines
from gradfix.report import addresses
from gradfix.system.printable import encodable

if TYPE_CHECKING:
    from gradfix.pipeline.certificate import Certificate
    from gradfix.pipeline.json_types import FindingData, FindingFix
    from gradfix.rewriting.patch import Position
    from gradfix.verify.evidence import Evidence

_Json = dict[str, Any]
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def of_report(report: Report) -> str:
    """``check`` as one array, as ruff prints it; a file that could not be checked is an element of it."""
    return dump(entries(report))


def entries(report: Report) -> list[FindingData]:
    """What ``check`` found, element by element: problems first, then the findings of each file."""
    return [one for one, _ in entries_with_text(report)]


def entries_with_text(report: Report) -> Iterator[tuple[FindingData, str]]:
    """The same, each with the text of its file; a problem has none, for its file may not be text."""
    for problem in report.all_problems:
        yield _problem(problem), ""
    for file in report.files:
        for one in findings_of(file):
            yield one, file.text


def of_codemods(known: Iterable[Codemod]) -> str:
    """``list`` as an array of ``{code, severity, summary, documentation}``."""
    return dump(
        [
            {
                "code": one.name,
                "severity": one.severity,
                "summary": one.summary,
                "documentation": one.documentation,
            }
            for one in known
        ]
    )


def of_counts(counts: Sequence[Count]) -> str:
    """``check --statistics`` as an array of ``{code, count, fixable}``."""
    return dump([{"code": one.code, "count": one.number, "fixable": one.fixable} for one in counts])


def of_file(report: FileReport) -> list[_Json]:
    """The same of one file."""
    return [{**one} for one in (*map(_problem, report.problems), *findings_of(report))]


def findings_of(report: FileReport) -> list[FindingData]:
    """The findings of one file, without what kept it from being checked."""
    return _findings(report.path, report.text, report.findings)


def of_plan(plan: Plan) -> str:
    """``apply`` as an array of ``{filename, fixes, remaining, hidden, written}``.

    ``remaining`` holds what ``check`` would say of the file afterwards, problems among it, and ``hidden``
    what it would not say although nothing has mended it.
    """
    alone = [
        {"filename": problem.path, "fixes": [], "remaining": [_problem(problem)], "written": False}
        for problem in plan.problems
    ]
    return dump(alone + [_repaired(file) for file in plan.files])


def of_judged(files: Sequence[Judged]) -> str:
    """``verify --before`` as an array of ``{filename, repaired, mistakes, problems, ...}``."""
    return dump([_judged(file) for file in files])


def _judged(file: Judged) -> _Json:
    judgement = file.judgement
    content: _Json = {
        "filename": file.before,
        "repaired": file.after,
        "mistakes": [],
        "problems": [_problem(problem) for problem in file.problems],
    }
    if judgement is None:
        return content
    lines = split_lines(file.text)
    content["mistakes"] = [
        {
            "code": finding.code,
            "message": finding.message,
            "severity": None if finding.severity is None else str(finding.severity),
            "location": _start(lines, finding.span),
            "outcome": verdict.outcome,
            "reason": verdict.reason,
        }
        for finding, verdict in zip(file.findings, judgement.verdicts)
    ]
    return content | {
        "runs": [{"version": version, "summary": what} for version, what in judgement.runs],
        "python": judgement.python,
        "interpreter": judgement.interpreter,
        "passed_over": list(judgement.passed_over),
        "torch": judgement.torch,
        "seeds": list(judgement.seeds),
        "seconds": round(judgement.seconds, 1),
        "sandbox": judgement.sandbox,
    }


def of_rerun(found: Certificate, file: Path | None, evidence: Evidence) -> str:
    """``verify --certificate`` as an object: what the certificate says, and what was seen ``again``."""
    return dump(certificate.again(found, file, evidence))


def dump(value: object) -> str:
    """A value as indented JSON in ASCII, with a newline at the end.

    A byte of a file name that is no UTF-8 is written out (``\\xe9``): what Python keeps it as, half a pair of
    UTF-16, is refused by many readers of JSON, and the whole report with it.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    text = _NOT_ASCII.sub(lambda found: json.dumps(encodable(found[0]))[1:-1], text)
    # Two of these signs stand in texts alone, where a job that prints them would take them for an order.
    return text.replace("##", "#\\u0023") + "\n"


def _repaired(file: FilePlan) -> _Json:
    return {
        "filename": file.path,
        "fixes": [_attempt(attempt) for attempt in file.attempts],
        "remaining": [_problem(problem) for problem in file.problems]
        + _findings(file.path, file.text, file.remaining),
        "hidden": [
            {"code": one.code, "message": one.message, "location": _start(split_lines(file.text), one.span)}
            for one in file.hidden
        ],
        "written": file.written,
    }


def _attempt(attempt: Attempt) -> _Json:
    return {
        "code": attempt.finding.code,
        "message": attempt.fix.message,
        "severity": None if attempt.finding.severity is None else str(attempt.finding.severity),
        "way": None if attempt.fix.way is None else str(attempt.fix.way),
        "effect": str(attempt.fix.effect),
        "outcome": str(attempt.outcome),
        "reason": attempt.reason,
        "location": _start(split_lines(attempt.before), attempt.reported_finding.span),
        "asked_for": attempt.asked_for,
        "also": [
            {"code": one.code, "location": _start(split_lines(attempt.before), one.span)}
            for one in attempt.also
        ],
        "ways": [certificate.way_of(one) for one in (attempt, *attempt.ways)] if attempt.ways else [],
        "evidence": None if attempt.evidence is None else attempt.evidence.to_json(),
    }


def _findings(path: str, text: str, findings: Sequence[Reported]) -> list[FindingData]:
    lines = split_lines(text)
    return [_finding(path, text, lines, reported) for reported in findings]


def _finding(path: str, text: str, lines: Sequence[str], reported: Reported) -> FindingData:
    finding = reported.finding
    return {
        "code": finding.code,
        "message": finding.message,
        "filename": path,
        "location": _start(lines, finding.span),
        "end_location": _end(lines, finding.span),
        "fix": _fix(text, reported),
        "url": addresses.of_codemod(finding.code),
        "severity": finding.severity,
        "ways": list(finding.available_ways),
        "effect": None if reported.fix is None else reported.fix.effect,
        "notes": [
            {
                "location": _start(lines, note.span),
                "end_location": _end(lines, note.span),
                "message": note.message,
            }
            for note in finding.notes
        ],
    }


def _fix(text: str, reported: Reported) -> FindingFix | None:
    if reported.fix is None or reported.fixed_text is None:
        return None
    from gradfix.rewriting.patch import edits_between

    return {
        "applicability": reported.fix.applicability,
        "message": reported.fix.message,
        "edits": edits_between(text, reported.fixed_text),
    }


def _problem(problem: Problem) -> FindingData:
    place: Position = {"row": problem.line or 1, "column": problem.column}
    return {
        "code": problem.code,
        "message": problem.message,
        "filename": problem.path,
        "location": place,
        "end_location": place,
        "fix": None,
        "url": None,
        "severity": Severity.ERROR,
        "ways": [],
        "effect": None,
        "notes": [],
    }


def _start(lines: Sequence[str], span: Span) -> Position:
    return _place(lines, span.line, span.column)


def _end(lines: Sequence[str], span: Span) -> Position:
    return _place(lines, span.end_line, span.end_column)


def _place(lines: Sequence[str], line: int, column: int) -> Position:
    return {"row": line, "column": character_column(lines[line - 1], column) if line <= len(lines) else 1}
