"""What ``apply`` replaces, kept so that ``gradfix undo`` can put it back.

A journal is one file for one ``apply``, written before the first file of the project is replaced; so an apply
that was killed half-way can be taken back too. It holds the old content of each file and a digest of the new
one. It lies in the user's own state folder (``$XDG_STATE_HOME/gradfix/undo``, else below ``~/.local/state``),
which nobody else may read or write, and never in the project.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gradfix.project.configuration import repository_root
from gradfix.project.source import Problem
from gradfix.system import files, interrupts

MOST = 50
"""Journals that are kept, of all projects; the oldest go first."""
LARGEST = 64 << 20
"""Bytes of all journals together."""

FORMAT = 1


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A file that was to be replaced."""

    path: str
    """Its real path."""
    before: bytes
    after: str
    """A digest of the new content."""


@dataclass(frozen=True, slots=True)
class Journal:
    """What one ``apply`` was about to do."""

    name: str
    """Of its file; names are in order of time."""
    time: float
    """In seconds since the epoch."""
    folder: str
    """The real path of the folder that it was started in."""
    entries: tuple[JournalEntry, ...]


class RestoredFile(NamedTuple):
    """A file that is taken back."""

    path: str
    now: bytes
    before: bytes


class Undone(NamedTuple):
    """What became of taking back one ``apply``."""

    journal: Journal
    changes: tuple[RestoredFile, ...]
    """The files that hold what they held before, or would."""
    problems: tuple[Problem, ...]
    """The files that were left as they are; the journal still has them."""


# ---------------------------------------------------------------------------- keeping


def record(changes: Iterable[tuple[str, bytes, bytes]]) -> Journal:
    """Keep what is about to be replaced: the path, the old and the new content of each file.

    Raises:
        OSError: It cannot be kept, as there is no folder for it, or it is too large.
    """
    entries = tuple(JournalEntry(os.path.realpath(path), old, _digest(new)) for path, old, new in changes)
    at = time.time_ns()
    name = f"{at:020d}-{os.urandom(4).hex()}.json"
    journal = Journal(name, at / 1e9, os.path.realpath(os.curdir), entries)
    with _home() as home:
        data = _dump(journal)
        _make_room(home, len(data))
        home.save(name, data, 0o600)
    return journal


def keep(journal: Journal, paths: Collection[str]) -> None:
    """Keep of ``journal`` only the files with the real ``paths``, which are those that matter after all.

    Raises:
        OSError: The journal cannot be written.
    """
    left = tuple(entry for entry in journal.entries if entry.path in paths)
    if left == journal.entries:
        return
    with _home() as home:
        if left:
            home.save(journal.name, _dump(replace(journal, entries=left)), 0o600)
        else:
            home.remove(journal.name)


def _make_room(home: files.Folder, size: int) -> None:
    """Remove the oldest journals for one of ``size`` bytes more."""
    if size > LARGEST:
        raise files.Refused(f"is too large to be kept: the old files have {size >> 20} MiB")
    room = LARGEST - size
    for count, name in enumerate(reversed(_names(home)), start=1):
        status = home.status(name)
        room -= status.st_size if status else 0
        if count >= MOST or room < 0:
            home.remove(name)


# ---------------------------------------------------------------------------- taking back


def last() -> Journal | None:
    """The last ``apply`` that was started in the current folder, or wrote to the project around it.

    The project is the git repository around the current folder, else the folder itself.

    Raises:
        OSError: The journals cannot be read.
    """
    here = os.path.realpath(os.curdir)
    project = os.path.join(repository_root(here) or here, "")
    try:
        home = _home(make=False)
    except FileNotFoundError:
        return None
    with home:
        for name in reversed(_names(home)):
            journal = _load(home, name)
            if journal is not None and (
                journal.folder == here or any(entry.path.startswith(project) for entry in journal.entries)
            ):
                return journal
    return None


def take_back(journal: Journal, *, dry_run: bool = False) -> Undone:
    """Give every file of ``journal`` its old content, if it still holds exactly what was written.

    A file that does not is a problem, and is left as it is; the others are taken back all the same, for the
    fixes of one file do not depend on another. One that holds its old content already is passed over.
    """
    changes: list[RestoredFile] = []
    problems: dict[str, Problem] = {}
    for entry in journal.entries:
        interrupts.check()
        shown = _shown(entry.path)
        try:
            with files.folder_of(entry.path) as folder:
                now = _taken_back(folder, entry, dry_run)
            if now is not None:
                changes.append(RestoredFile(shown, now, entry.before))
        except OSError as error:
            problems[entry.path] = Problem(shown, files.describe_error(error, "was not taken back"))
    if not dry_run:
        keep(journal, problems)
    return Undone(journal, tuple(changes), tuple(problems.values()))


def _taken_back(folder: files.Folder, entry: JournalEntry, dry_run: bool) -> bytes | None:
    """What a file holds, or held, that is taken back; ``None`` if it has its old content already."""
    name = os.path.basename(entry.path)
    if not dry_run:
        folder.sweep()
    now = folder.read(name)
    if now == entry.before:
        return None
    if _digest(now) != entry.after:
        raise files.Refused("was not taken back: it has changed since `apply` wrote it")
    if not dry_run:
        with interrupts.whole():
            folder.replace(name, now, entry.before)
    return now


def _shown(path: str) -> str:
    below = os.path.join(os.path.realpath(os.curdir), "")
    return path.removeprefix(below)


# ---------------------------------------------------------------------------- the files


def _home(*, make: bool = True) -> files.Folder:
    """The folder of the journals, made where it is missing.

    Raises:
        Refused: It belongs to somebody else, or others may read it or write to it.
        FileNotFoundError: It is missing, and is not to be made.
        OSError: It cannot be made.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # As the specification has it.
        base = os.path.expanduser(os.path.join("~", ".local", "state"))
    if not os.path.isabs(base):
        raise files.Refused("cannot be kept: there is no home folder")
    if make:
        files.must_be_ours(base)
        os.makedirs(base, mode=0o700, exist_ok=True)
    mode = 0o700 if make else None
    with files.Folder(base) as outer, outer.inner("gradfix", mode) as own:
        home = own.inner("undo", mode)
    try:
        home.must_be_private()
    except BaseException:
        home.close()
        raise
    return home


def _names(home: files.Folder) -> Sequence[str]:
    """The files of the journals, the oldest first."""
    return [name for name in home.names() if name.endswith(".json")]


def _dump(journal: Journal) -> bytes:
    kept = [
        {
            "path": entry.path,
            "before": base64.b64encode(zlib.compress(entry.before)).decode(),
            "after": entry.after,
        }
        for entry in journal.entries
    ]
    content = {"format": FORMAT, "time": journal.time, "folder": journal.folder, "files": kept}
    return json.dumps(content).encode()


def _load(home: files.Folder, name: str) -> Journal | None:
    """The journal in a file; ``None`` if it is none that this version can read."""
    try:
        content = json.loads(home.read(name, 2 * LARGEST))
        if content["format"] != FORMAT:
            return None
        entries = tuple(
            JournalEntry(_path(one["path"]), zlib.decompress(base64.b64decode(one["before"])), one["after"])
            for one in content["files"]
        )
        at = float(content["time"])
        time.localtime(at)  # It is going to be told.
        return Journal(name, at, content["folder"], entries)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error):
        return None


def _path(value: str) -> str:
    """A real path, as it was kept."""
    if not os.path.isabs(value) or b"\0" in os.fsencode(value):
        raise ValueError(value)
    return value


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
