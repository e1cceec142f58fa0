"""Small files in the user's cache folder: private, written atomically, and limited in number.

Nothing here is an error. What cannot be read is not there, and what cannot be written will not be there the
next time. Nobody waits for anybody: a file is renamed into its place when it is whole.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from gradfix.system import files

LARGEST = 4 * 2**20
"""Bytes of a file; what takes more is not kept."""
SIZE = 200 * 2**20
"""Bytes of all files in a folder together, about."""
DAY = 86_400
"""Seconds; a file that is used is touched if it has not been for so long."""
AGE = 30 * DAY
"""Seconds after which a file that nobody has used is removed."""
SWEEP = 256
"""Of so many files that are written, one has the folder swept: which one is chance, as their names are."""
ROOM = 4096
"""Bytes that a file takes at least."""

_TEMPORARY = ".new-"
_NAME = re.compile("[0-9a-f]{8,}")
"""Files are named by digests."""


class Removed(NamedTuple):
    """What a cleaning has removed."""

    files: int
    size: int
    """In bytes."""


def place(kind: str) -> str | None:
    """The folder for one kind of things to keep, whether or not it is there; ``None`` if there is no home.

    It is in the folder that ``GRADFIX_CACHE_DIR`` names, else in the user's cache folder.
    """
    given = os.environ.get("GRADFIX_CACHE_DIR")
    if given:
        return os.path.join(os.path.abspath(given), kind)
    shared = os.environ.get("XDG_CACHE_HOME") or ""
    # What is not absolute is to be ignored, as the specification of these folders has it.
    home = shared if os.path.isabs(shared) else os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "gradfix", kind) if os.path.isabs(home) else None


def came_with_the_code(folder: str, repository: str | None) -> bool:
    """Whether a repository could bring what is in the folder along; not if the user's home is one."""
    if repository is None:
        return False
    real, home = (os.path.realpath(path) for path in (folder, os.path.expanduser("~")))
    return _within(real, repository) and not _within(home, repository)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def own(folder: str) -> bool:
    """Whether there is such a folder, made if need be, that is the user's alone, as are links on the way."""
    try:
        files.must_be_ours(folder)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return _is_own(folder)
    except (OSError, ValueError):
        return False


def _is_own(folder: str) -> bool:
    if not hasattr(os, "getuid"):
        return os.path.isdir(folder)
    at = folder
    while at != os.path.dirname(at):
        status = os.lstat(at)
        if stat.S_ISLNK(status.st_mode) and status.st_uid not in (os.getuid(), 0):
            return False
        at = os.path.dirname(at)
    status = os.stat(folder)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def read(folder: str, name: str) -> bytes:
    """The bytes of a regular file of the user's own; none if there is no such file."""
    place = os.path.join(folder, name)
    try:
        descriptor, status = files.open_regular(place, follow=False)
    except (OSError, ValueError):
        return b""
    try:
        mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if not mine or status.st_size > LARGEST:
            return b""
        if abs(time.time() - status.st_mtime) > DAY:
            with suppress(OSError):
                os.utime(place)
        return os.read(descriptor, LARGEST)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def write(folder: str, name: str, data: bytes) -> None:
    """Put a file in its place, whole or not at all. Its ``name`` is a digest."""
    if len(data) > LARGEST:
        return
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
    if int(name[:8], 16) % SWEEP == 0:
        sweep(folder)


def sweep(folder: str) -> None:
    """Remove files that nobody has used for long, and the oldest of the others where there are too many.

    The clock may have been put forward or back: what seems to come from the future is as old as can be.
    """
    now = time.time()
    aged: list[tuple[float, int, os.DirEntry[str]]] = []
    for entry in _files(folder):
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            age = now - status.st_mtime
            aged.append((age if age > -DAY else AGE + 1, max(status.st_size, ROOM), entry))
    aged.sort(key=lambda one: one[0])
    total = 0
    for age, room, entry in aged:
        total += room
        # One that is being written is left alone.
        if age > AGE or total > SIZE or (entry.name.startswith(_TEMPORARY) and age > DAY):
            _remove(entry)


def clean(folder: str) -> Removed:
    """Remove all files of ours in a folder, if it is the user's own."""
    if not (os.path.isdir(folder) and own(folder)):
        return Removed(0, 0)
    sizes = [_remove(entry) for entry in list(_files(folder))]
    return Removed(len(sizes), sum(sizes))


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    """The files in the folder that are ours."""
    with suppress(OSError), os.scandir(folder) as scan:
        for entry in scan:
            if entry.name.startswith(_TEMPORARY) or _NAME.fullmatch(entry.name):
                yield entry


def _remove(entry: os.DirEntry[str]) -> int:
    """Remove a file: how many bytes that frees."""
    try:
        size = entry.stat(follow_symlinks=False).st_size
        os.unlink(entry.path)
    except OSError:
        return 0
    return size
