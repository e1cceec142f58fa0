"""Where files are, as services that show findings beside the code want to be told."""

from __future__ import annotations

import os
from pathlib import PurePath

from gradfix.project.configuration import repository_root


def below(path: str, root: str) -> str:
    """A path as seen from the folder ``root``, with slashes; as it is where it is not below that."""
    absolute, root = os.path.abspath(path), os.path.abspath(root)
    inside = os.path.commonpath([absolute, root]) == root if _same_drive(absolute, root) else False
    return PurePath(os.path.relpath(absolute, root) if inside else path).as_posix()


def repository() -> str:
    """The root of the repository that the current folder is in; the folder itself where there is none."""
    folder = os.getcwd()
    return repository_root(folder) or folder


def _same_drive(one: str, other: str) -> bool:
    return os.path.splitdrive(one)[0] == os.path.splitdrive(other)[0]
