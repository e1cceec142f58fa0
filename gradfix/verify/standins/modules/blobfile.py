"""blobfile: files wherever they are, which are those of this machine."""

from __future__ import annotations

import glob as _glob
import os
import shutil
from os import listdir, makedirs, remove, rmdir, scandir, stat, walk
from os.path import basename, dirname, exists, getsize, isdir, isfile, join
from typing import Any

from ..inert import others

__all__ = [
    "BlobFile",
    "basename",
    "copy",
    "dirname",
    "exists",
    "getsize",
    "glob",
    "isdir",
    "isfile",
    "join",
    "listdir",
    "makedirs",
    "remove",
    "rmdir",
    "rmtree",
    "scandir",
    "stat",
    "walk",
]


def BlobFile(path: str, mode: str = "r", **kwargs: Any) -> Any:
    """An open file."""
    return open(path, mode)


def glob(pattern: str, **kwargs: Any) -> Any:
    """The files whose paths fit a pattern."""
    return iter(_glob.glob(pattern, recursive=True))


def copy(src: str, dst: str, overwrite: bool = False, **kwargs: Any) -> None:
    """Copy a file."""
    if not overwrite and exists(dst):
        raise FileExistsError(f"Destination '{dst}' already exists and overwrite is disabled")
    shutil.copyfile(src, os.path.join(dst, basename(src)) if isdir(dst) else dst)


def rmtree(path: str, **kwargs: Any) -> None:
    """Remove a folder."""
    shutil.rmtree(path)


__getattr__ = others(__name__)
