"""Reading the output files of a run, which may have put anything in their place."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from gradfix.system import files


def read(path: Path, most: int, *, tail: bool = False) -> bytes:
    """The first (or last) ``most`` bytes of a plain file; nothing if it is anything else or is not there.

    No link is followed, and nothing is waited for: a pipe in the file's place is not opened for good.
    """
    try:
        opened, seen = files.open_regular(path, follow=False)
    except OSError:
        return b""
    with os.fdopen(opened, "rb") as file:
        if tail:
            file.seek(max(0, seen.st_size - most))
        with suppress(OSError):
            return file.read(most)
    return b""
