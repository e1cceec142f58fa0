"""Findings as workflow commands, which GitHub shows beside the code.

The syntax is that of "Workflow commands for GitHub Actions": ``::error file=...,line=...::message``.
"""

from __future__ import annotations

import os

from gradfix.pipeline.results import Report
from gradfix.report import json
from gradfix.report.places import below
from gradfix.system.printable import printable

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def of_report(report: Report) -> str:
    """``check`` as one command for each finding and problem; paths are those below the checkout."""
    root = os.environ.get("GITHUB_WORKSPACE", os.getcwd())
    lines = []
    for one in json.entries(report):
        properties = {
            "title": f"gradfix ({one['code']})",
            "file": below(one["filename"], root),
            "line": one["location"]["row"],
            "col": one["location"]["column"],
            "endLine": one["end_location"]["row"],
            "endColumn": one["end_location"]["column"],
        }
        parameters = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
        lines.append(f"::{LEVELS[one['severity']]} {parameters}::{_data(one['message'])}\n")
    return "".join(lines)


def _data(text: str) -> str:
    """A message on one line, with what would end it written in another way.

    It is shown in the log of the job, which is a terminal, and beside the code.
    """
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    """The value of a property, with what would end it written in another way."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
