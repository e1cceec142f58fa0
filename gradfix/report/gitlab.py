"""Findings as a Code Quality report, which GitLab shows in merge requests.

The fields are those of "Code Quality report format" in GitLab's documentation; it ignores others.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gradfix.pipeline.fingerprints import Fingerprints
from gradfix.pipeline.results import Report
from gradfix.report import json
from gradfix.report.places import below

if TYPE_CHECKING:
    from gradfix.pipeline.json_types import FindingData

SEVERITIES = {"error": "major", "warning": "minor", "info": "info"}


def of_report(report: Report) -> str:
    """``check`` as one array; paths are those below the checkout."""
    root = os.environ.get("CI_PROJECT_DIR", os.getcwd())
    fingerprints = Fingerprints()
    return json.dump([_issue(one, text, root, fingerprints) for one, text in json.entries_in_files(report)])


def _issue(one: FindingData, text: str, root: str, fingerprints: Fingerprints) -> dict[str, Any]:
    path = below(one["filename"], root)
    return {
        "check_name": one["code"],
        "description": one["message"],
        "severity": SEVERITIES[one["severity"] or "warning"],
        # Issues of one fingerprint are shown as one.
        "fingerprint": fingerprints.of(one["code"], one["location"]["row"], one["message"], text, path),
        "location": {
            "path": path,
            "positions": {
                "begin": {"line": one["location"]["row"], "column": one["location"]["column"]},
                "end": {"line": one["end_location"]["row"], "column": one["end_location"]["column"]},
            },
        },
    }
