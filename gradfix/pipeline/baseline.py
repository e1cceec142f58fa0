"""A baseline: the findings that a project has for now. What is not among them is reported.

It is a file of JSON, with a line for each kind of finding in each file, so that people can read its changes.
A finding is recognised as :mod:`gradfix.pipeline.fingerprints` says, so it may move within its file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gradfix.core.codemod import Finding, Severity
from gradfix.pipeline.fingerprints import Identity, Lines, lines_of
from gradfix.project import configuration
from gradfix.project.source import Problem, Source
from gradfix.system import files
from gradfix.system.printable import encodable

if TYPE_CHECKING:
    from gradfix.pipeline.json_types import BaselineEntry

SCHEMA = 1


class Known(NamedTuple):
    """Findings that a baseline holds, which are all the same."""

    filename: str
    """From the folder of the baseline, with slashes."""
    identity: Identity
    severity: Severity
    number: int
    """How many there are."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline that was read."""

    file: str
    entries: tuple[Known, ...] = ()
    folder: str = ""
    """The real path of the folder that its names count from."""

    def of(self, path: str) -> Counter[Identity]:
        """What it holds of the file at ``path``, and how often."""
        name, counts = self.name_of(path), Counter[Identity]()
        for one in self.entries:
            if one.filename == name:
                counts[one.identity] += one.number
        return counts

    def name_of(self, path: str) -> str:
        """How it names the file at ``path``."""
        return encodable(os.path.relpath(os.path.realpath(path), self.folder).replace(os.sep, "/"))

    def split(self, findings: Sequence[Finding], parsed: Source) -> tuple[list[Finding], list[Identity]]:
        """The findings of ``parsed`` that are new, and what the others are recognised by."""
        left = self.of(parsed.path)
        if not left:
            return list(findings), []
        lines = Lines(parsed.lines, parsed.tree)
        new: list[Finding] = []
        known: list[Identity] = []
        for finding in findings:
            identity = lines.identity(finding.code, finding.span.line)
            if identity is not None and left[identity] > 0:
                left[identity] -= 1
                known.append(identity)
            else:
                new.append(finding)
        return new, known


def load(file: str) -> Baseline | Problem:
    """The baseline in ``file``."""
    try:
        content = json.loads(files.read(file, files.LARGEST))
        if content["schema"] != SCHEMA:
            return Problem(file, f"is a baseline of another schema than {SCHEMA}: write it again")
        entries = tuple(_known(one) for one in content["findings"])
    except FileNotFoundError:
        return Problem(file, "there is no such baseline: `gradfix check --write-baseline` writes it")
    except OSError as error:
        return Problem(file, files.describe_error(error))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Problem(file, "is no baseline (`gradfix schema baseline` says what one looks like)")
    return Baseline(file, entries, _folder_of(file))


def _folder_of(file: str) -> str:
    return os.path.dirname(os.path.realpath(file))


def _known(one: Any) -> Known:
    words = [one[name] for name in ("filename", "code", "function", "line")]
    if not all(isinstance(word, str) for word in words) or type(one["count"]) is not int or one["count"] < 1:
        raise ValueError
    return Known(words[0], Identity(*words[1:]), Severity(one["severity"]), one["count"])


def empty(file: str) -> Baseline:
    """A baseline that is to be written to ``file``."""
    return Baseline(file, (), _folder_of(file))


def dump(entries: Iterable[Known]) -> bytes:
    """The bytes of a baseline with ``entries``, which are ordered by file."""
    lines = [json.dumps(_data(one), ensure_ascii=False) for one in sorted(entries)]
    body = ",\n".join(f"  {line}" for line in lines)
    return f'{{"schema": {SCHEMA}, "findings": [\n{body}\n]}}\n'.encode("utf-8", "backslashreplace")


def _data(one: Known) -> BaselineEntry:
    return {
        "filename": one.filename,
        "code": one.identity.code,
        "function": one.identity.function,
        "line": one.identity.line,
        "severity": one.severity,
        "count": one.number,
    }


class Looked(NamedTuple):
    """A file that was looked at under a baseline, and what was found there."""

    path: str
    text: str
    findings: tuple[Finding, ...]
    known: tuple[Identity, ...]
    """What those are recognised by that the baseline holds."""
    codes: frozenset[str]
    """The codemods that report there."""
    min_severity: Severity
    failed: bool
    """Whether something could not be done: then it is not known what there is."""

    def judges(self, entry: Known) -> bool:
        """Whether ``entry`` would have been found if it were there."""
        reported = entry.identity.code in self.codes and entry.severity.is_at_least(self.min_severity)
        return reported and not self.failed


def outdated(baseline: Baseline, looked: Sequence[Looked]) -> list[Known]:
    """What ``baseline`` holds and is not found any more, as far as that is known."""
    by_name = {baseline.name_of(one.path): one for one in looked}
    found = {name: Counter(one.known) for name, one in by_name.items()}
    left: list[Known] = []
    for entry in baseline.entries:
        file = by_name.get(entry.filename)
        if file is None:
            if not os.path.lexists(os.path.join(baseline.folder, entry.filename)):
                left.append(entry)
        elif file.judges(entry):
            more = entry.number - found[entry.filename][entry.identity]
            if more > 0:
                left.append(entry._replace(number=more))
    return left


def renewed(old: Baseline, looked: Sequence[Looked]) -> list[Known]:
    """The entries of a baseline after all of ``looked``: what is found there, and that of which nothing is
    known."""
    gone = {(one.filename, one.identity) for one in outdated(old, looked)}
    by_name = {old.name_of(one.path): one for one in looked}
    kept = [
        one
        for one in old.entries
        if (one.filename, one.identity) not in gone
        and not ((file := by_name.get(one.filename)) and file.judges(one))
    ]
    found = [entry for name, file in by_name.items() for entry in _entries(name, file)]
    return list({(one.filename, one.identity): one for one in (*kept, *found)}.values())


def _entries(name: str, file: Looked) -> list[Known]:
    if file.failed or not file.findings:
        return []
    lines = lines_of(file.text)
    entries: dict[Identity, Known] = {}
    for finding in file.findings:
        identity = lines.identity(finding.code, finding.span.line)
        if identity is not None:
            one = entries.get(identity, Known(name, identity, finding.severity or Severity.ERROR, 0))
            entries[identity] = one._replace(number=one.number + 1)
    return list(entries.values())


def save(baseline: Baseline, entries: Iterable[Known]) -> Problem | None:
    """Write ``entries`` to the file of ``baseline``."""
    return configuration.save(baseline.file, dump(entries))
