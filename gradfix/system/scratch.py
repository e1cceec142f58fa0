"""Temporary folders that are always removed: what a killed run left, a later one removes.

A folder is in use for as long as a process holds the lock on the file ``.lock`` in it. The system lets go of
the lock with the process, however that ends.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing is told apart there, and so nothing is swept.
    fcntl = None  # type: ignore[assignment]

PREFIX = "gradfix-run-"
LOCK = ".lock"


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder for this process alone, removed afterwards; and before, what killed ones have left."""
    parent = Path(tempfile.gettempdir())
    sweep(parent)
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
    # Under another name until it is locked, or somebody's sweep could be first.
    held = _locked(made / f"{LOCK}ing", os.O_CREAT | os.O_EXCL)
    os.rename(made / f"{LOCK}ing", made / LOCK)
    try:
        yield made
    finally:
        _remove(made)
        if held is not None:
            os.close(held)


def sweep(parent: Path) -> None:
    """Remove the folders of this user that killed processes have left in ``parent``."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _own(entry):
                held = _locked(Path(entry.path, LOCK))
                if held is not None:
                    _remove(Path(entry.path))
                    os.close(held)


def _remove(folder: Path) -> None:
    from gradfix.verify import removal  # A clean check needs none of it.

    removal.remove(folder)


def _own(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder of this user's that nobody else may write to: in a temporary folder any name may
    be anybody's."""
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not seen.st_mode & 0o022


def _locked(file: Path, flags: int = 0) -> int | None:
    """The descriptor that holds the lock on a file; none if it is not there, or another process holds it."""
    flags |= os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        opened = os.open(file, flags, 0o600)
    except OSError:
        return None
    try:
        if fcntl is not None:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
