"""Findings as SARIF 2.1.0, which code hosts and editors read.

The format is that of OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradfix import __version__
from gradfix.pipeline.results import Report
from gradfix.report import json
from gradfix.report.places import below
from gradfix.rules.catalog import Catalog

LEVELS = {"error": "error", "warning": "warning", "info": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_Json = dict[str, Any]


def of_report(report: Report, catalog: Catalog) -> str:
    """``check`` as one run: the codemods that found something as rules, and a result for each finding.

    What kept files from being checked is among the results, with a rule of its own.
    """
    found = json.entries(report)
    codes = sorted({one["code"] for one in found})
    root = os.getcwd()
    run = {
        "tool": {
            "driver": {
                "name": "gradfix",
                "semanticVersion": __version__,
                "rules": [_rule(code, catalog) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, codes.index(one["code"]), root) for one in found],
    }
    return json.dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str, catalog: Catalog) -> _Json:
    codemod = catalog.get(code)
    if isinstance(codemod, str):
        return {"id": code, "defaultConfiguration": {"level": "error"}}
    return {
        "id": code,
        "shortDescription": {"text": codemod.summary},
        "help": {"text": codemod.documentation},
        "defaultConfiguration": {"level": LEVELS[codemod.severity]},
    }


def _result(one: _Json, rule: int, root: str) -> _Json:
    artifact = _artifact(one["filename"], root)
    result = {
        "ruleId": one["code"],
        "ruleIndex": rule,
        "level": LEVELS[one["severity"]],
        "message": {"text": _text(one["message"])},
        "locations": [_location(artifact, one)],
        "relatedLocations": [
            {"id": number, "message": {"text": _text(note["message"])}, **_location(artifact, note)}
            for number, note in enumerate(one["notes"])
        ],
    }
    if one["fix"] is not None:
        result["fixes"] = [_fix(one["fix"], artifact)]
    return result


def _text(message: str) -> str:
    """A message without links: readers make one of ``[text](target)``, which code may look like."""
    return message.replace("](", "] (")


def _artifact(path: str, root: str) -> _Json:
    name = below(path, root)
    if os.path.isabs(name):
        return {"uri": Path(name).as_uri()}
    # The bytes of the name: not all names are text.
    return {"uri": quote(os.fsencode(name)), "uriBaseId": "%SRCROOT%"}


def _location(artifact: _Json, at: _Json) -> _Json:
    return {"physicalLocation": {"artifactLocation": artifact, "region": _region(at)}}


def _region(at: _Json) -> _Json:
    return {
        "startLine": at["location"]["row"],
        "startColumn": at["location"]["column"],
        "endLine": at["end_location"]["row"],
        "endColumn": at["end_location"]["column"],
    }


def _fix(fix: _Json, artifact: _Json) -> _Json:
    """The whole of a fix; one that changes what a program learns says so."""
    replacements = [
        {"deletedRegion": _region(edit), "insertedContent": {"text": edit["content"]}}
        for edit in fix["edits"]
    ]
    return {
        "description": {"text": _text(f"{fix['message']} ({fix['applicability']})")},
        "artifactChanges": [{"artifactLocation": artifact, "replacements": replacements}],
    }
