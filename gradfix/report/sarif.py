"""Findings as SARIF 2.1.0, which code hosts and editors read.

The format is that of OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0". What GitHub's
code scanning requires of it is told in "SARIF support for code scanning" in its documentation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gradfix import __version__
from gradfix.core.codemod import Codemod
from gradfix.pipeline.fingerprints import Fingerprints
from gradfix.pipeline.results import Report
from gradfix.project.source import Problem, ProblemCode, split_lines
from gradfix.report import addresses, json
from gradfix.report.documentation import first_paragraph, in_markdown
from gradfix.report.line_hashes import line_hashes
from gradfix.report.places import below, repository
from gradfix.rules.catalog import Catalog

if TYPE_CHECKING:
    from gradfix.pipeline.json_types import FindingData, FindingFix, FindingNote
    from gradfix.rewriting.patch import Position, TextEdit

LEVELS = {"error": "error", "warning": "warning", "info": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LONGEST_DESCRIPTION = 1024
"""In characters: code scanning takes no more."""

PROBLEMS: dict[ProblemCode, str] = {
    "syntax-error": "A file is no Python that this version of Python can parse, and was not checked.",
    "io-error": "A file or a setting could not be read, and what needs it was not checked.",
    "internal-error": "gradfix failed on a file, which was not checked in full: please report it.",
}
"""The kinds of what keeps files from being checked."""

_PROBLEM_SEVERITIES = {"error": "error", "warning": "warning", "info": "recommendation"}
_ROOT = "%SRCROOT%"
_CONTEXT = 2
"""How many lines around a region are shown with it."""

_Json = dict[str, Any]


def of_report(report: Report, catalog: Catalog) -> str:
    """``check`` as one run: all codemods as rules, a result for each finding, and how the run went.

    What kept files from being checked is no result: it is among the notifications of the invocation.
    """
    root = repository()
    rules = {codemod.name: index for index, codemod in enumerate(catalog.codemods)}
    driver = {
        "name": "gradfix",
        "version": __version__,
        "semanticVersion": __version__,
        **_given("informationUri", addresses.HOME),
        "rules": [_rule(codemod) for codemod in catalog.codemods],
        "notifications": [_descriptor(code) for code in sorted({one.code for one in report.all_problems})],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(report, root)],
        "originalUriBaseIds": {_ROOT: {"uri": _folder(root)}},
        "columnKind": "unicodeCodePoints",
        "results": _results(report, rules, root),
    }
    return json.dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _given(name: str, value: str | None) -> _Json:
    return {} if value is None else {name: value}


def _descriptor(code: ProblemCode) -> _Json:
    """A kind of problems, with all that is required of a rule."""
    text = {"text": PROBLEMS[code]}
    return {
        "id": code,
        "name": _name(code),
        "shortDescription": text,
        "fullDescription": text,
        "help": text,
        "defaultConfiguration": {"level": "error"},
    }


def _name(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("-"))


def _rule(codemod: Codemod) -> _Json:
    documentation = codemod.documentation
    return {
        "id": codemod.name,
        "name": _name(codemod.name),
        "shortDescription": {"text": codemod.summary[:LONGEST_DESCRIPTION]},
        "fullDescription": {"text": first_paragraph(documentation, LONGEST_DESCRIPTION)},
        "help": {"text": documentation, "markdown": in_markdown(documentation)},
        **_given("helpUri", addresses.of_codemod(codemod.name)),
        "defaultConfiguration": {"level": LEVELS[codemod.severity]},
        "properties": {
            "tags": ["pytorch", "autograd"],
            "precision": "high",
            "problem.severity": _PROBLEM_SEVERITIES[codemod.severity],
        },
    }


# ---------------------------------------------------------------------------- how the run went


def _invocation(report: Report, root: str) -> _Json:
    problems = report.all_problems
    notes = [(file.path, note) for file in report.files for note in file.notes]
    notifications = [_problem(problem, root) for problem in problems]
    notifications += [
        _notification("warning", "no Python files are found here", path, root) for path in report.empty
    ]
    notifications += [_notification("note", note, path, root) for path, note in notes]
    notifications += [
        _with_region(_notification("note", described, step["filename"], root), step["location"])
        for step, described in json.training_steps_in_files(report)
        if step["status"] != "followed"
    ]
    return {
        "executionSuccessful": not problems,
        "exitCode": report.exit_code,
        "workingDirectory": {"uri": _folder(os.getcwd())},
        "toolExecutionNotifications": notifications,
        "properties": {"trainingSteps": report.coverage._asdict()},
    }


def _problem(problem: Problem, root: str) -> _Json:
    cell = "" if problem.cell is None else f"cell {problem.cell}, line {problem.line}: "
    notification = _notification("error", f"{cell}{problem.message}", problem.path, root)
    if problem.line:
        line, column = problem.in_file or (problem.line, problem.column)
        notification = _with_region(notification, {"row": line, "column": column})
    return {"descriptor": {"id": problem.code}, **notification}


def _with_region(notification: _Json, at: Position) -> _Json:
    """``notification``, which then stands at a place in its file."""
    (location,) = notification["locations"]
    location["physicalLocation"]["region"] = {"startLine": at["row"], "startColumn": at["column"]}
    return notification


def _notification(level: str, message: str, path: str, root: str) -> _Json:
    location = {"physicalLocation": {"artifactLocation": _artifact(path, root)}}
    return {"level": level, "message": {"text": _text(message)}, "locations": [location]}


# ---------------------------------------------------------------------------- findings


def _results(report: Report, rules: dict[str, int], root: str) -> list[_Json]:
    fingerprints = Fingerprints()
    results = []
    for file in report.files:
        if not file.findings:
            continue
        text = file.notebook or file.text
        lines, hashes = split_lines(text), line_hashes(text)
        for one in json.findings_in_file(file):
            result = _result(one, lines, root)
            if one["code"] in rules:
                result["ruleIndex"] = rules[one["code"]]
            result["partialFingerprints"] = {
                "primaryLocationLineHash": hashes[one["location"]["row"] - 1],
                "gradfix/v1": fingerprints.of(
                    one["code"],
                    one["location"]["row"],
                    one["message"],
                    text,
                    _artifact(file.path, root)["uri"],
                ),
            }
            results.append(result)
    return results


def _result(one: FindingData, lines: Sequence[str], root: str) -> _Json:
    artifact = _artifact(one["filename"], root)
    notes = [_note(note, artifact, lines) for note in one["notes"]]
    result: _Json = {
        "ruleId": one["code"],
        "level": LEVELS[one["severity"] or "warning"],
        "message": {"text": _text(one["message"])},
        "locations": [_location(artifact, one, lines)],
        "relatedLocations": [{"id": number, **note} for number, note in enumerate(notes)],
    }
    if len(notes) > 1:
        steps = [{"location": note} for note in notes]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if one["fix"] is not None:
        result["fixes"] = [_fix(one["fix"], artifact)]
    return result


def _note(note: FindingNote, artifact: _Json, lines: Sequence[str]) -> _Json:
    return {"message": {"text": _text(note["message"])}, **_location(artifact, note, lines)}


def _text(message: str) -> str:
    """A message without links: readers make one of ``[text](target)``, which code may look like."""
    return message.replace("](", "] (")


def _folder(path: str) -> str:
    return f"{Path(path).as_uri()}/"


def _artifact(path: str, root: str) -> _Json:
    # Code scanning shows nothing at a link: the file itself is named.
    name = below(os.path.realpath(path), os.path.realpath(root))
    if os.path.isabs(name):
        return {"uri": Path(name).as_uri()}
    # The bytes of the name: not all names are text.
    return {"uri": quote(os.fsencode(name)), "uriBaseId": _ROOT}


def _location(artifact: _Json, at: FindingData | FindingNote, lines: Sequence[str]) -> _Json:
    first, last = at["location"]["row"], at["end_location"]["row"]
    there = len(lines) - (lines[-1] == "")  # What ends with a newline has no line after it.
    start, end = max(first - _CONTEXT, 1), max(min(last + _CONTEXT, there), last)
    physical: _Json = {
        "artifactLocation": artifact,
        "region": {**_region(at), "snippet": {"text": _snippet(at, lines)}},
    }
    if (start, end) != (first, last):  # It has to be more than the region.
        text = "\n".join(lines[start - 1 : end])
        physical["contextRegion"] = {"startLine": start, "endLine": end, "snippet": {"text": text}}
    return {"physicalLocation": physical}


def _region(at: FindingData | FindingNote | TextEdit) -> _Json:
    return {
        "startLine": at["location"]["row"],
        "startColumn": at["location"]["column"],
        "endLine": at["end_location"]["row"],
        "endColumn": at["end_location"]["column"],
    }


def _snippet(at: FindingData | FindingNote, lines: Sequence[str]) -> str:
    """The text of a region."""
    first, last = at["location"], at["end_location"]
    inside = list(lines[first["row"] - 1 : last["row"]])
    inside[-1:] = [line[: last["column"] - 1] for line in inside[-1:]]
    inside[:1] = [line[first["column"] - 1 :] for line in inside[:1]]
    return "\n".join(inside)


def _fix(fix: FindingFix, artifact: _Json) -> _Json:
    """The whole of a fix; one that changes what a program learns says so."""
    replacements = [
        {"deletedRegion": _region(edit), "insertedContent": {"text": edit["content"]}}
        for edit in fix["edits"]
    ]
    return {
        "description": {"text": _text(f"{fix['message']} ({fix['applicability']})")},
        "artifactChanges": [{"artifactLocation": artifact, "replacements": replacements}],
    }
