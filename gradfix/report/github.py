"""Findings as workflow commands, which GitHub shows beside the code.

The syntax is that of "Workflow commands for GitHub Actions": ``::error file=...,line=...::message``.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from gradfix.pipeline.results import Report
from gradfix.report import json
from gradfix.report.places import below
from gradfix.system.printable import printable

if TYPE_CHECKING:
    from gradfix.pipeline.json_types import FindingData

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
SHOWN = 10
"""How many commands of one level are shown beside the code for each step; more are in its log alone."""
LONGEST_MESSAGE = 4096
"""In characters; the runner cuts what is longer."""
LONGEST_TITLE = 255


def of_report(report: Report) -> str:
    """``check`` as one command for each finding and problem; paths are those below the checkout.

    Where there are more than GitHub shows beside the code, a command says so. The last one tells how many
    training steps were followed.
    """
    root = os.environ.get("GITHUB_WORKSPACE", os.getcwd())
    entries = [one for one, _ in json.entries_in_files(report)]
    lines = [_command(one, root) for one in entries]
    counts = Counter(_level(one) for one in entries)
    more = [f"{count} {level}s" for level, count in sorted(counts.items()) if count > SHOWN]
    if more:
        lines.append(
            f"::notice title=gradfix::There are {' and '.join(more)}; of each, GitHub shows {SHOWN} beside "
            "the code. The log of this step has all.\n"
        )
    lines.append(f"::notice title=gradfix::{report.coverage}\n")
    return "".join(lines)


def _level(one: FindingData) -> str:
    return LEVELS[one["severity"] or "warning"]


def _command(one: FindingData, root: str) -> str:
    first, last = one["location"], one["end_location"]
    properties: dict[str, object] = {
        "title": f"gradfix ({one['code']})"[:LONGEST_TITLE],
        "file": below(one["filename"], root),
        "line": first["row"],
        "endLine": last["row"],
    }
    if first["row"] == last["row"]:  # On several lines there may be no columns.
        properties |= {"col": first["column"], "endColumn": last["column"]}
    parameters = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{_level(one)} {parameters}::{_message(one)}\n"


def _message(one: FindingData) -> str:
    """What is wrong, why, and what the fix is: a line each."""
    lines = [one["message"]]
    for note in one["notes"]:
        # Of a notebook, the message names the cell and the line in it.
        at = f"line {note['location']['row']}: " if note["cell"] is None else ""
        lines.append(f"{at}{note['message']}")
    if one["fix"] is not None:
        unsafe = "" if one["fix"]["applicability"] == "safe" else ", with --unsafe-fixes"
        lines.append(f"fix (gradfix apply{unsafe}): {one['fix']['message']}")
    shown = "\n".join(map(printable, lines))
    if len(shown) > LONGEST_MESSAGE:
        shown = f"{shown[: LONGEST_MESSAGE - 3]}..."
    return _escaped(shown)


def _escaped(text: str) -> str:
    """A text on one line, as the runner reads it back.

    It is shown in the log of the job, which is a terminal, and beside the code: what would act on either has
    been written out before.
    """
    return text.replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of a property, with what would end it written in another way."""
    return _escaped(printable(text)).replace(":", "%3A").replace(",", "%2C")
