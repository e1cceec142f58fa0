"""Where a module of the project's own lies, which a script cannot import from where it is run."""

from __future__ import annotations

import os
from pathlib import Path

FOLDERS = 2_000
"""Folders of a project that are looked through."""
INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules", "venv", "env", "__pycache__"})
"""Folders of which nothing is a project's own."""


def folder_of(name: str, root: Path) -> str | None:
    """The folder below ``root``, as seen from there, from which Python could import the module ``name``."""
    for number, (folder, inner, _) in enumerate(os.walk(root)):
        if number == FOLDERS:
            return None
        if _has(Path(folder), name):
            return "its root" if folder == str(root) else os.path.relpath(folder, root)
        inner[:] = sorted(one for one in inner if not one.startswith(".") and one not in INSTALLED)
    return None


def _has(folder: Path, name: str) -> bool:
    """Whether ``folder`` has the module, as a file or as a folder with modules in it."""
    module = folder.joinpath(*name.split("."))
    return module.with_name(f"{module.name}.py").is_file() or any(module.glob("*.py"))
