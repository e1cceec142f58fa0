"""Which files are the user's own, and which of their lines are running."""

from __future__ import annotations

import os
import sys
import sysconfig
import types

from .. import FOLDER

Place = tuple[str, int]
"""A file and a line."""

LIBRARIES = tuple(
    {os.path.join(path, "") for key in ("stdlib", "platstdlib") for path in [sysconfig.get_path(key)] if path}
)

OWN: dict[str, bool] = {}
"""Whether a file is the user's, by its name in code objects."""


def is_part(file: str) -> bool:
    """Whether a file is one of these."""
    return os.path.abspath(file).startswith(os.path.join(FOLDER, ""))


def is_own(file: str) -> bool:
    known = OWN.get(file)
    if known is None:
        path = os.path.abspath(file)
        library = "site-packages" in path or "dist-packages" in path or path.startswith(LIBRARIES)
        known = OWN[file] = not (file.startswith("<") or library or is_part(path))
    return known


def own_files() -> list[str]:
    """The files of the user's modules that have been imported, the script among them."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [
        file
        for file in dict.fromkeys(files)
        if isinstance(file, str) and file.endswith((".py", ".ipynb")) and os.path.isabs(file) and is_own(file)
    ]


def places(frame: types.FrameType | None) -> list[Place]:
    """The user's lines that are running, innermost first, at most four."""
    found: list[Place] = []
    while frame is not None and len(found) < 4:
        if is_own(frame.f_code.co_filename):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found
