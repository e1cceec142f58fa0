"""Comments that silence findings, added to a file where the analysis heeds them.

Nothing else of a file changes: the text is read back, and has to give the same tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gradfix.core.codemod import Finding
from gradfix.core.span import Span
from gradfix.pipeline.placing import placed
from gradfix.pipeline.results import FileReport
from gradfix.pipeline.writing import Change
from gradfix.project import source
from gradfix.project.source import SUPPRESSION, Problem, Source
from gradfix.system import files


class Ignored(NamedTuple):
    """A file with comments that silence findings."""

    source: Source
    findings: tuple[Finding, ...]
    """Those that are silenced."""
    left: tuple[Finding, ...]
    """Those that no comment can silence, since no line about them has room for one."""


class Ignoring(NamedTuple):
    """What is to be written so that findings are silenced."""

    changes: tuple[Change, ...]
    silenced: tuple[int, ...]
    """How many findings each of the changes silences."""
    left: tuple[tuple[str, Finding], ...]
    """Those that no comment can silence, each with its file."""
    problems: tuple[Problem, ...]


def ignore_all(reports: Iterable[FileReport], reason: str = "") -> Ignoring:
    """The comments for all findings of ``reports``."""
    changes: dict[Change, int] = {}
    left: list[tuple[str, Finding]] = []
    problems: list[Problem] = []
    for file in reports:
        parsed = _as_it_was(file, reason) if file.findings else None
        if isinstance(parsed, Problem):
            problems.append(parsed)
        elif parsed is not None:
            done = ignore(parsed, [one.finding for one in file.findings], reason)
            left += [(file.path, finding) for finding in done.left]
            if done.findings:
                changes[Change(file.path, parsed.data, done.source.data)] = len(done.findings)
    return Ignoring(tuple(changes), tuple(changes.values()), tuple(left), tuple(problems))


def _as_it_was(file: FileReport, reason: str) -> Source | Problem:
    """The file that was looked at, if it can be written."""
    parsed = source.read(file.path, files.LARGEST)
    if isinstance(parsed, Problem):
        return parsed
    if parsed.text != file.text:
        return Problem(file.path, "has changed since it was looked at")
    # The JSON of a notebook can say anything.
    if parsed.notebook is None and isinstance(encoded := parsed.encode(reason), Problem):
        return encoded
    return parsed if parsed.lossless else parsed.lossy


def ignore(parsed: Source, findings: Iterable[Finding], reason: str = "") -> Ignored:
    """``parsed`` with a comment for each of ``findings``, or a name more in a comment that is there.

    ``reason`` is put behind the comments that are new.
    """
    now = parsed
    silenced: list[Finding] = []
    left: list[Finding] = []
    for finding in findings:
        after = now if _is_ignored(now, finding) else _with_comment(now, finding, reason)
        if after is None:
            left.append(finding)
        else:
            silenced.append(finding)
            now = after
    return Ignored(now, tuple(silenced), tuple(left))


def _is_ignored(parsed: Source, finding: Finding) -> bool:
    return any(parsed.suppressed(finding.code, span) for span in _spans(finding, parsed))


def _spans(finding: Finding, parsed: Source) -> list[Span]:
    """Where a comment about a finding is heeded: at the finding, else where its fix is made."""
    return [finding.span, *(placed(finding, fix, parsed.tree).span for fix in finding.fixes)]


def _with_comment(parsed: Source, finding: Finding, reason: str) -> Source | None:
    """``parsed`` with ``finding`` silenced; ``None`` if no line can hold the comment.

    The end of a line may be inside a string, or behind a backslash: then the text means something else.
    """
    meaning = ast.dump(parsed.tree)
    ends = re.split(r"(\r\n|\r|\n)", parsed.text)  # The lines, and their ends between them.
    for number in _lines(parsed, finding):
        at = 2 * (number - 1)
        for line in with_name(ends[at], finding.code, reason):
            after = parsed.with_text("".join((*ends[:at], line, *ends[at + 1 :])))
            if isinstance(after, Source) and ast.dump(after.tree) == meaning and _is_ignored(after, finding):
                return after
    return None


def _lines(parsed: Source, finding: Finding) -> Iterator[int]:
    """Where the comment may stand, the best line first: where there is one, then where the finding is."""
    possible: dict[int, None] = {}
    for span in _spans(finding, parsed):
        possible |= dict.fromkeys((span.line, *sorted(parsed.lines_that_speak_for(span))))
    commented = {line for line, _ in parsed.suppressions.by_line}
    yield from sorted(possible, key=lambda line: line not in commented)


def with_name(line: str, name: str, reason: str = "") -> Iterator[str]:
    """``line`` with the codemod ``name`` silenced: its name in a comment that is there, else a new comment.

    What looks like a comment may be part of a string, so there may be several lines to try.
    """
    for found in reversed(list(SUPPRESSION.finditer(line))):
        if found[2] is not None:
            names = sorted({*re.split(r"[\s,]+", found[2].strip()), name} - {""})
            yield f"{line[: found.start(2)]}{', '.join(names)}{line[found.end(2) :]}"
    why = f"  # {reason}" if reason else ""
    yield f"{line.rstrip()}  # gradfix: ignore[{name}]{why}"
