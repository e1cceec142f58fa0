"""What ``check`` found in a file, kept in the user's cache folder until something changes that it rests on.

An entry is named by all that is known beforehand: the file's path and bytes, gradfix itself, Python, the
codemods, and what was asked for. In it stands what the analysis learned from the file system (see
:mod:`gradfix.traces`), and it counts only while the file system still says the same. So no entry is ever
wrong for being old, and none has to be removed in time.

Nothing here is an error: an entry that is damaged, of another key, or not the user's own is passed over, and
one that cannot be written is not there the next time. Nobody waits for anybody: entries are renamed into
their places whole.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gradfix import __version__, catalog, codemod, traces
from gradfix.results import FileReport, Reported

if TYPE_CHECKING:
    from gradfix.pipeline import Options

FORMAT = 1
"""Of the entries."""
LARGEST = 4 * 2**20
"""Bytes of an entry; what takes more is not kept."""
SIZE = 200 * 2**20
"""Bytes of all entries together, about."""
DAY = 86_400
"""Seconds; an entry that is used is touched if it has not been for so long."""
AGE = 30 * DAY
"""Seconds after which an entry that nobody has used is removed."""
SWEEP = 256
"""Of so many entries that are written, one has the folder swept: which one is chance, as their names are."""
ROOM = 4096
"""Bytes that a file takes at least."""
CODE = 20_000
"""Files in which the codemods of a folder may lie; more are not looked through."""

_TEMPORARY = ".new-"
_ENTRY = re.compile("[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Cache:
    """The entries for one way of asking."""

    folder: str
    asked: str
    """A digest of all that findings rest on, but for files."""
    lines: dict[str, bool] = field(default_factory=dict)
    """The lines of traces that have been looked at, by their digests, and whether they hold."""

    def get(self, path: str, data: bytes) -> FileReport | None:
        """The report on the file at ``path`` with the bytes ``data``, if it is known."""
        key = self._key(path, data)
        digest, _, entry = _read(os.path.join(self.folder, key)).partition(b"\n")
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
        if report.problems:
            return
        key = self._key(path, data)
        told = report if report.findings or report.messages else None
        lines = [self._share(line) for line in traces.trace(os.path.abspath(path))]
        try:
            entry = json.dumps([key, lines, _plain(told)]).encode()
            if told is not None and _value(json.loads(entry)[2]) != told:
                return  # A codemod has put into its findings what does not belong there.
        except (ValueError, KeyError, TypeError):
            return
        self._write(key, traces.digest(entry).encode() + b"\n" + entry)

    def _holds(self, name: str) -> bool:
        """Whether the line of traces that is called ``name`` is there and still holds."""
        known = self.lines.get(name)
        if known is None:
            line = _read(os.path.join(self.folder, name))
            known = self.lines[name] = name == traces.digest(line) and traces.holds(line)
        return known

    def _share(self, line: bytes) -> str:
        """The name of a line of traces, which is kept once for all that rest on it."""
        name = traces.digest(line)
        if not self.lines.get(name):
            if _read(os.path.join(self.folder, name)) != line:
                self._write(name, line)
            self.lines[name] = True
        return name

    def _write(self, name: str, data: bytes) -> None:
        if len(data) < LARGEST:
            _write(self.folder, name, data)
            if int(name[:8], 16) % SWEEP == 0:
                sweep(self.folder)

    def _key(self, path: str, data: bytes) -> str:
        where = map(os.fsencode, (path, os.path.abspath(path)))
        return traces.digest(self.asked.encode(), *where, data)


def open_for(options: Options, repository: str | None, *, with_fixes: bool) -> Cache | None:
    """The entries for what is asked with ``options`` about files in ``repository``.

    ``None`` where no folder is to be had, or where nobody knows what findings rest on.
    """
    code = _code_of(options.catalog)
    folder = _place() if code is not None else None
    if code is None or folder is None or _came_with_the_code(folder, repository) or not _own(folder):
        return None
    asked = [
        FORMAT,
        sys.version,
        code,
        sorted(options.selected),
        options.unsafe_fixes,
        options.settings.max_file_size,
        with_fixes,
    ]
    return Cache(folder, traces.digest(json.dumps(asked).encode()))


def folder() -> str | None:
    """Where entries are kept, whether or not it is there; ``None`` where there is no such place."""
    return _place()


class Removed(NamedTuple):
    """What a cleaning has removed."""

    entries: int
    size: int
    """In bytes."""


def clean() -> Removed:
    """Remove all entries."""
    place = _place()
    if place is None or not os.path.isdir(place) or not _own(place):
        return Removed(0, 0)
    sizes = [_remove(entry) for entry in list(_entries(place))]
    return Removed(len(sizes), sum(sizes))


# ---------------------------------------------------------------------------- the folder


def _place() -> str | None:
    given = os.environ.get("GRADFIX_CACHE_DIR")
    if given:
        return os.path.join(os.path.abspath(given), "check")
    shared = os.environ.get("XDG_CACHE_HOME") or ""
    # What is not absolute is to be ignored, as the specification of these folders has it.
    home = shared if os.path.isabs(shared) else os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "gradfix", "check") if os.path.isabs(home) else None


def _came_with_the_code(folder: str, repository: str | None) -> bool:
    """Whether a repository could bring the entries along; not if the user's home is one."""
    if repository is None:
        return False
    real, home = (os.path.realpath(path) for path in (folder, os.path.expanduser("~")))
    return _within(real, repository) and not _within(home, repository)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _own(folder: str) -> bool:
    """Whether there is such a folder, made if need be, that is the user's alone, and so is the way to it."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not hasattr(os, "getuid"):
            return True
        at = folder
        while at != os.path.dirname(at):
            status = os.lstat(at)
            if stat.S_ISLNK(status.st_mode) and status.st_uid not in (os.getuid(), 0):
                return False
            at = os.path.dirname(at)
        status = os.stat(folder)
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    except (OSError, ValueError):
        return False


def _read(place: str) -> bytes:
    """The bytes of a file of the user's own, and no link; none if there is no such file."""
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(place, flags | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""
    try:
        status = os.fstat(descriptor)
        mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if not (stat.S_ISREG(status.st_mode) and mine and status.st_size <= LARGEST):
            return b""
        if abs(time.time() - status.st_mtime) > DAY:
            with suppress(OSError):
                os.utime(place)
        return os.read(descriptor, LARGEST)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _write(folder: str, name: str, data: bytes) -> None:
    """Put an entry in its place, whole or not at all."""
    temporary = os.path.join(folder, f"{_TEMPORARY}{os.getpid()}-{name}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o600)
    except OSError:
        return
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
        os.replace(temporary, os.path.join(folder, name))
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)


def sweep(folder: str, size: int = SIZE) -> None:
    """Remove entries that nobody has used for long, and the oldest of the others where there are too many.

    The clock may have been put forward or back: what seems to come from the future is as old as can be.
    """
    now = time.time()
    aged: list[tuple[float, int, os.DirEntry[str]]] = []
    for entry in _entries(folder):
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            age = now - status.st_mtime
            aged.append((age if age > -DAY else AGE + 1, max(status.st_size, ROOM), entry))
    aged.sort(key=lambda one: one[0])
    # An entry that is being written is not swept away.
    total = 0
    for age, room, entry in aged:
        total += room
        if age > AGE or total > size or (entry.name.startswith(_TEMPORARY) and age > 3600):
            _remove(entry)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """The files in the folder that are ours."""
    with suppress(OSError), os.scandir(folder) as scan:
        for entry in scan:
            if entry.name.startswith(_TEMPORARY) or _ENTRY.fullmatch(entry.name):
                yield entry


def _remove(entry: os.DirEntry[str]) -> int:
    """Remove an entry: how many bytes that frees."""
    try:
        size = entry.stat(follow_symlinks=False).st_size
        os.unlink(entry.path)
    except OSError:
        return 0
    return size


# ---------------------------------------------------------------------------- what findings rest on


def _code_of(known: catalog.Catalog) -> str | None:
    """A digest of all code that makes findings; ``None`` if nobody knows where it lies.

    Our own goes by the sizes and times of its files, as it is too much to read each time; that of others by
    content.
    """
    if known.installed:
        return None
    package = os.path.dirname(os.path.realpath(__file__))
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
        held = traces.read(path, LARGEST)
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
        *(FileReport, Reported, codemod.Finding, codemod.Note, codemod.Span, codemod.Fix, codemod.Claim),
        *(codemod.Effect, codemod.ReplaceExpression, codemod.RemoveArgument, codemod.InsertStatement),
        *(codemod.RemoveStatement, codemod.ReplaceStatement, codemod.MoveStatement),
    )
}
"""What a report is made of, besides tuples, text and numbers; nothing else is made of an entry."""


def _plain(value: object) -> object:
    """A part of a report as JSON has it: what is not a tuple, a text or a number goes by its type."""
    if isinstance(value, codemod.Effect):
        return {"Effect": [str(value)]}
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
