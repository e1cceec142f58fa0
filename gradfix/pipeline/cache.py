"""The results of ``check``, cached per file until something that they depend on changes.

An entry is named by all that is known beforehand: the file's path and bytes, gradfix itself, Python, the
codemods, and what was asked for. In it stands what the analysis learned from the file system (see
:mod:`gradfix.project.traces`), and it counts only while the file system still says the same. So no entry is
ever wrong for being old, and none has to be removed in time.

An entry that is damaged, or of another key, is passed over and replaced.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import gradfix
from gradfix import __version__
from gradfix.core import codemod, coverage, span
from gradfix.pipeline.fingerprints import Identity
from gradfix.pipeline.results import FileReport, Reported
from gradfix.project import traces
from gradfix.project.source import MAX_BYTES
from gradfix.rules import catalog
from gradfix.system import store

if TYPE_CHECKING:
    from gradfix.pipeline.baseline import Baseline
    from gradfix.pipeline.options import Options

FORMAT = 3
"""Of the entries."""
PICTURES = 4 << 20
"""Characters of a notebook that are kept with what is found in it; larger ones are looked at each time."""
CODE = 20_000
"""Files in which the codemods of a folder may lie; more are not looked through."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The entries for one way of asking."""

    folder: str
    asked: str
    """A digest of all that findings rest on, but for files."""
    baseline: Baseline | None = None
    """The findings that are not reported."""
    lines: dict[str, bool] = field(default_factory=dict)
    """The lines of traces that have been looked at, by their digests, and whether they hold."""

    def get(self, path: str, data: bytes) -> FileReport | None:
        """The report on the file at ``path`` with the bytes ``data``, if it is known."""
        key = self._key(path, data)
        digest, _, entry = store.read(self.folder, key).partition(b"\n")
        if digest != traces.digest(entry).encode():
            return None
        try:
            known, lines, report = json.loads(entry)
            if known != key or not all(map(self._holds, lines)):
                return None
            # Mostly there is nothing to tell: then not even the text is kept.
            found = FileReport(path) if report is None else _value(report)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return found if isinstance(found, FileReport) else None

    def put(self, path: str, data: bytes, report: FileReport) -> None:
        """Keep the report on a file that has just been looked at."""
        # What went wrong (memory ran out, a codemod failed) need not go wrong again.
        if report.problems or len(report.notebook) > PICTURES:
            return
        key = self._key(path, data)
        kept = None if report.silent else report
        lines = [self._share(line) for line in traces.trace(os.path.abspath(path))]
        try:
            entry = json.dumps([key, lines, _plain(kept)]).encode()
            if kept is not None and _value(json.loads(entry)[2]) != kept:
                return  # A codemod has put into its findings what does not belong there.
        except (ValueError, KeyError, TypeError):
            return
        store.write(self.folder, key, traces.digest(entry).encode() + b"\n" + entry)

    def _holds(self, name: str) -> bool:
        """Whether the line of traces that is called ``name`` is there and still holds."""
        known = self.lines.get(name)
        if known is None:
            line = store.read(self.folder, name)
            known = self.lines[name] = name == traces.digest(line) and traces.holds(line)
        return known

    def _share(self, line: bytes) -> str:
        """The name of a line of traces, which is kept once for all that rest on it."""
        name = traces.digest(line)
        if not self.lines.get(name):
            if store.read(self.folder, name) != line:
                store.write(self.folder, name, line)
            self.lines[name] = True
        return name

    def _key(self, path: str, data: bytes) -> str:
        where = map(os.fsencode, (path, os.path.abspath(path)))
        known = () if self.baseline is None else sorted(self.baseline.of(path).items())
        return traces.digest(self.asked.encode(), *where, json.dumps(known).encode(), data)


def open_for(options: Options, repository: str | None, *, with_fixes: bool) -> Cache | None:
    """The entries for what is asked with ``options`` about files in ``repository``.

    ``None`` where there is no folder, or where it is not known what findings depend on.
    """
    code = _code_of(options.catalog)
    folder = store.place("check")
    if code is None or folder is None or store.came_with_the_code(folder, repository):
        return None
    if not store.own(folder):
        return None
    asked = [
        FORMAT,
        sys.version,
        code,
        sorted(options.selected),
        options.unsafe_fixes,
        options.min_severity,
        options.certain,
        options.settings.max_file_size,
        options.settings.per_file_ignores,
        options.settings.root if options.settings.per_file_ignores else None,
        with_fixes,
    ]
    return Cache(folder, traces.digest(json.dumps(asked).encode()), options.baseline)


# ---------------------------------------------------------------------------- what findings rest on


def _code_of(known: catalog.Catalog) -> str | None:
    """A digest of all code that produces findings; ``None`` if its location is not known.

    Our own goes by the sizes and times of its files, as it is too much to read each time; that of others by
    content.
    """
    if known.installed:
        return None
    package = os.path.dirname(os.path.realpath(gradfix.__file__))
    parts = [__version__, package, *_distribution("libcst")]
    for folder in dict.fromkeys((package, os.path.realpath(catalog.builtin()))):
        for path in _python_files(folder):
            with suppress(OSError):
                status = os.stat(path)
                parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    files = [path for folder in known.folders for path in _python_files(folder)]
    if len(files) > CODE:
        return None
    for path in files:
        held = traces.read(path, MAX_BYTES)
        parts += [path, "" if held is None else traces.digest(held)]
    return traces.digest(*map(os.fsencode, parts))


def _distribution(name: str) -> list[str]:
    """The name and version of an installed package, without importing it, nor :mod:`importlib.metadata`."""
    from importlib.util import find_spec

    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return []
    beside = os.path.dirname(os.path.dirname(spec.origin))
    with suppress(OSError), os.scandir(beside) as scan:
        return sorted(entry.name for entry in scan if entry.name.startswith(f"{name}-"))
    return []


def _python_files(folder: str) -> Iterator[str]:
    for at, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(at, name) for name in sorted(names) if name.endswith(".py"))


# ---------------------------------------------------------------------------- as JSON


_PARTS: dict[str, Callable[..., Any]] = {
    part.__name__: part
    for part in (
        *(FileReport, Reported, codemod.Finding, codemod.Note, span.Span, codemod.Fix, codemod.Claim),
        *(coverage.TrainingStep, coverage.Status),
        codemod.UnknownFunction,
        Identity,
        *(
            codemod.Effect,
            codemod.Severity,
            codemod.Way,
            codemod.ReplaceExpression,
            codemod.RemoveArgument,
            codemod.InsertStatement,
        ),
        *(codemod.RemoveStatement, codemod.ReplaceStatement, codemod.MoveStatement),
        *(codemod.Decorate, codemod.Enclose),
    )
}
"""What a report is made of, besides tuples, text and numbers; nothing else is made of an entry."""


def _plain(value: object) -> object:
    """A part of a report as JSON has it: what is not a tuple, a text or a number goes by its type."""
    if isinstance(value, (codemod.Effect, codemod.Severity, codemod.Way, coverage.Status)):
        return {type(value).__name__: [str(value)]}
    if is_dataclass(value):
        return {type(value).__name__: [_plain(getattr(value, item.name)) for item in fields(value)]}
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return {type(value).__name__: parts} if hasattr(value, "_fields") else parts
    return value


def _value(plain: Any) -> Any:
    """What :func:`_plain` has been given."""
    if isinstance(plain, dict):
        ((name, parts),) = plain.items()
        return _PARTS[name](*map(_value, parts))
    return tuple(map(_value, plain)) if isinstance(plain, list) else plain
