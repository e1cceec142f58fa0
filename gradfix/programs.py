"""Programs that gradfix starts, by their names."""

from __future__ import annotations

import os
import shutil


def find(name: str) -> str | None:
    """The path of a program, which is looked for in the absolute folders of ``PATH`` alone.

    A relative or empty entry of ``PATH`` stands for the current folder, whose programs may be anybody's.
    """
    found = shutil.which(name, path=search_path())
    return found if found is None or os.path.isabs(found) else None


def search_path() -> str:
    """``PATH`` without what depends on the current folder."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry))
