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
from gradfix.project.source import Layout, Problem, character_column, layout
from gradfix.report import addresses, text
from gradfix.system.printable import encodable

if TYPE_CHECKING:
    from gradfix.pipeline.certificate import Certificate
    from gradfix.pipeline.json_types import FindingData, FindingFix, TrainingStepData
    from gradfix.rewriting.patch import Position, TextEdit
    from gradfix.verify.evidence import Evidence

_Json = dict[str, Any]
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def of_report(report: Report) -> str:
    """``check`` as one array, as ruff prints it; a file that could not be checked is an element of it.

    So are, as the last one, the training steps, if there are any.
    """
    steps = [step for step, _ in _training_steps(report, in_file=False)]
    return dump([*entries(report), *([_coverage(report, steps)] if steps else [])])


def entries(report: Report) -> list[FindingData]:
    """What ``check`` found, element by element: problems first, then the findings of each file."""
    return [*map(_problem, report.all_problems), *(one for file in report.files for one in findings_of(file))]


def entries_in_files(report: Report) -> Iterator[tuple[FindingData, str]]:
    """The same at their places in the files, each with the text of its file; a problem has none, for its file
    may not be text."""
    for problem in report.all_problems:
        yield _problem(problem, in_file=True), ""
    for file in report.files:
        for one in findings_in_file(file):
            yield one, file.notebook or file.text


def training_steps_in_files(report: Report) -> list[tuple[TrainingStepData, str]]:
    """The training steps at their places in the files, each with what is said of it."""
    return _training_steps(report, in_file=True)


def _training_steps(report: Report, *, in_file: bool) -> list[tuple[TrainingStepData, str]]:
    found: list[tuple[TrainingStepData, str]] = []
    for file in report.files:
        places = _Places(file.path, file.text)
        if in_file and file.notebook:
            places = _PlacesInFile(file.path, file.text, file.notebook)
        for step in file.training_steps:
            data: TrainingStepData = {
                "filename": file.path,
                "cell": places.cell(step.line),
                "location": places.position(step.line, 0),
                "kind": step.kind,
                "name": places.reworded(step.name),
                "status": step.status,
                "assumption": step.assumption or None,
                "reason": places.reworded(step.reason) or None,
                "advice": places.reworded(step.advice) or None,
            }
            found.append((data, places.said(places.reworded(text.described(step)), step.line)))
    return found


def _coverage(report: Report, steps: list[TrainingStepData]) -> FindingData:
    """The element of the array that is no finding, and tells how many training steps were followed."""
    nowhere: Position = {"row": 1, "column": 1}
    return {
        "code": "training-steps",
        "message": str(report.coverage),
        "filename": "",
        "cell": None,
        "location": nowhere,
        "end_location": nowhere,
        "fix": None,
        "url": None,
        "severity": None,
        "assumption": None,
        "ways": [],
        "effect": None,
        "notes": [],
        "training_steps": steps,
    }


def of_codemods(known: Iterable[Codemod]) -> str:
    """``list`` as an array of ``{code, severity, clause, summary, documentation}``."""
    return dump(
        [
            {
                "code": one.name,
                "severity": one.severity,
                "clause": one.clause,
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


def findings_in_file(report: FileReport) -> list[FindingData]:
    """The same for readers who know nothing of cells: where they stand in the file, also if it is a notebook.

    The cell and the line within it are named in the messages then.
    """
    places = _Places(report.path, report.text)
    if report.notebook:
        places = _PlacesInFile(report.path, report.text, report.notebook)
    return [_finding(report.path, places, reported) for reported in report.findings]


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
    places = _Places(file.before, file.text)
    content["mistakes"] = [
        {
            "code": finding.code,
            "message": finding.message,
            "severity": None if finding.severity is None else str(finding.severity),
            **places.of(finding.span),
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
    places = _Places(file.path, file.text)
    return {
        "filename": file.path,
        "fixes": [_attempt(attempt, _Places(file.path, attempt.before)) for attempt in file.attempts],
        "remaining": [_problem(problem) for problem in file.problems]
        + _findings(file.path, file.text, file.remaining),
        "hidden": [{"code": one.code, "message": one.message, **places.of(one.span)} for one in file.hidden],
        "written": file.written,
    }


def _attempt(attempt: Attempt, places: _Places) -> _Json:
    return {
        "code": attempt.finding.code,
        "message": attempt.fix.message,
        "severity": None if attempt.finding.severity is None else str(attempt.finding.severity),
        "way": None if attempt.fix.way is None else str(attempt.fix.way),
        "effect": str(attempt.fix.effect),
        "outcome": str(attempt.outcome),
        "reason": attempt.reason,
        "out_of_time": attempt.out_of_time,
        **places.of(attempt.reported_finding.span),
        "asked_for": attempt.asked_for,
        "also": [{"code": one.code, **places.of(one.span)} for one in attempt.also],
        "ways": [certificate.way_of(one) for one in (attempt, *attempt.ways)] if attempt.ways else [],
        "evidence": None if attempt.evidence is None else attempt.evidence.to_json(),
    }


class _Places:
    """Where spans of a source are: row and column in the file, or in a cell of a notebook."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text
        self._layout: Layout = layout(path, text)

    def cell(self, line: int) -> int | None:
        return self._layout.cell(line)

    def position(self, line: int, column: int) -> Position:
        """A line and a column in bytes, as people count them."""
        return {"row": self._layout.row(line), "column": self._characters(line, column)}

    def of(self, span: Span) -> _Json:
        """Where something begins, with its cell if there is one."""
        return {"cell": self.cell(span.line), "location": self.position(span.line, span.column)}

    def said(self, message: str, line: int) -> str:
        """A message about a line."""
        return message

    def reworded(self, message: str) -> str:
        """A message with its lines named as people count them."""
        return self._layout.reworded(message)

    def edits(self, fixed: str) -> list[TextEdit]:
        """What makes ``fixed`` of the source."""
        from gradfix.rewriting.patch import edits_between

        parts = zip(self._layout.parts, layout(self._path, fixed).parts)
        return [edit for (cell, was), (_, now) in parts for edit in edits_between(was, now, cell)]

    def _characters(self, line: int, column: int) -> int:
        lines = self._layout.lines
        return character_column(lines[line - 1], column) if line <= len(lines) else 1


def edits(path: str, before: str, after: str) -> list[TextEdit]:
    """What makes ``after`` of the source ``before``."""
    return _Places(path, before).edits(after)


class _PlacesInFile(_Places):
    """Where spans of a notebook's code are in its file."""

    def __init__(self, path: str, text: str, notebook: str) -> None:
        from gradfix.project import notebooks

        super().__init__(path, text)
        self._notebook = notebooks.read(notebook)

    def position(self, line: int, column: int) -> Position:
        row, character = self._notebook.position(line, self._characters(line, column))
        return {"row": row, "column": character}

    def said(self, message: str, line: int) -> str:
        return f"{self._layout.words(line)}: {message}"

    def edits(self, fixed: str) -> list[TextEdit]:
        from gradfix.rewriting.patch import edits_between

        return edits_between(self._notebook.text, self._notebook.with_code(fixed))


def _findings(path: str, text: str, findings: Sequence[Reported]) -> list[FindingData]:
    places = _Places(path, text)
    return [_finding(path, places, reported) for reported in findings]


def _finding(path: str, places: _Places, reported: Reported) -> FindingData:
    finding = reported.finding
    span = finding.span
    return {
        "code": finding.code,
        "message": places.said(finding.message, span.line),
        "filename": path,
        "cell": places.cell(span.line),
        "location": places.position(span.line, span.column),
        "end_location": places.position(span.end_line, span.end_column),
        "fix": _fix(places, reported),
        "url": addresses.of_codemod(finding.code),
        "severity": finding.severity,
        "assumption": finding.assumption or None,
        "ways": list(finding.available_ways),
        "effect": None if reported.fix is None else reported.fix.effect,
        "notes": [
            {
                "cell": places.cell(note.span.line),
                "location": places.position(note.span.line, note.span.column),
                "end_location": places.position(note.span.end_line, note.span.end_column),
                "message": places.said(note.message, note.span.line),
            }
            for note in finding.notes
        ],
        "training_steps": None,
    }


def _fix(places: _Places, reported: Reported) -> FindingFix | None:
    if reported.fix is None or reported.fixed_text is None:
        return None
    return {
        "applicability": reported.fix.applicability,
        "message": reported.fix.message,
        "edits": places.edits(reported.fixed_text),
    }


def _problem(problem: Problem, *, in_file: bool = False) -> FindingData:
    place: Position = {"row": problem.line or 1, "column": problem.column}
    message = problem.message
    if in_file and problem.in_file is not None:
        place = {"row": problem.in_file[0], "column": problem.in_file[1]}
        message = f"cell {problem.cell}, line {problem.line}: {message}"
    return {
        "code": problem.code,
        "message": message,
        "filename": problem.path,
        "cell": problem.cell,
        "location": place,
        "end_location": place,
        "fix": None,
        "url": None,
        "severity": Severity.ERROR,
        "assumption": None,
        "ways": [],
        "effect": None,
        "notes": [],
        "training_steps": None,
    }
