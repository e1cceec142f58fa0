"""Findings as a Code Quality report, which GitLab shows in merge requests.

The fields are those of "Code Quality report format" in GitLab's documentation.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from typing import Any

from gradfix.pipeline.results import Report
from gradfix.report import json
from gradfix.report.places import below

SEVERITIES = {"error": "major", "warning": "minor", "info": "info"}


def of_report(report: Report) -> str:
    """``check`` as one array; paths are those below the checkout."""
    root = os.environ.get("CI_PROJECT_DIR", os.getcwd())
    seen: Counter[tuple[str, str, str]] = Counter()
    return json.dump([_issue(one, root, seen) for one in json.entries(report)])


def _issue(one: dict[str, Any], root: str, seen: Counter[tuple[str, str, str]]) -> dict[str, Any]:
    path = below(one["filename"], root)
    # What moves within its file stays the same issue; equal ones are told apart by their order.
    known = (path, one["code"], one["message"])
    material = "\0".join([*known, str(seen[known])]).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(material).hexdigest()
    seen[known] += 1
    return {
        "check_name": one["code"],
        "description": one["message"],
        "severity": SEVERITIES[one["severity"]],
        "fingerprint": digest,
        "location": {
            "path": path,
            "positions": {
                "begin": {"line": one["location"]["row"], "column": one["location"]["column"]},
                "end": {"line": one["end_location"]["row"], "column": one["end_location"]["column"]},
            },
        },
    }
