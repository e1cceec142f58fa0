"""Removing what a run has left, whatever it has made of its folder.

The server's guard removes it too where gradfix has been killed, in an interpreter that knows nothing of
gradfix: standard library only.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path


def remove(folder: Path) -> None:
    """Remove a folder and everything in it, however deep, unreadable, or linked to elsewhere.

    Nothing may be writing to it any more. What is nested is moved up to ``folder`` before it is
    emptied, so that neither the depth of the nesting nor the length of a path matters; no link is
    followed. What cannot be removed is left.
    """
    if os.rename not in os.supports_dir_fd or os.scandir not in os.supports_fd:
        shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(OSError):
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _empty(top: int) -> None:
    moved = 0
    waiting = _entries(top)
    while waiting:
        name, is_folder = waiting.pop()
        with suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=top)
                continue
            os.chmod(name, 0o700, dir_fd=top)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
            try:
                for child, child_is_folder in _entries(inner):
                    if child_is_folder:
                        # Moving a folder rewrites its `..`, for which it must be writable.
                        os.chmod(child, 0o700, dir_fd=inner)
                        moved += 1
                        fresh = f"gradfix-removes-{moved}-{os.urandom(4).hex()}"
                        os.rename(child, fresh, src_dir_fd=inner, dst_dir_fd=top)
                        waiting.append((fresh, True))
                    else:
                        os.unlink(child, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _entries(folder: int) -> list[tuple[str, bool]]:
    with os.scandir(folder) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
