"""Lookup of the programs that gradfix starts."""

from __future__ import annotations

import os
import shutil


def find(name: str) -> str | None:
    """The absolute path of a program: ``name`` itself if it is a path, else where ``PATH`` has it.

    A relative or empty entry of ``PATH`` is passed over: it stands for the current folder, whose programs may
    be anybody's.
    """
    found = shutil.which(name, path=search_path())
    return found and os.path.abspath(found)


def search_path() -> str:
    """``PATH`` without what depends on the current folder."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry))
