"""path: texts that are places for files."""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Iterator
from typing import Any


class Path(str):
    """A text with what ``os`` and ``os.path`` do as methods."""

    def __truediv__(self, other: Any) -> Path:
        return type(self)(os.path.join(self, str(other)))

    def __rtruediv__(self, other: Any) -> Path:
        return type(self)(os.path.join(str(other), self))

    def __add__(self, other: Any) -> Path:
        return type(self)(str.__add__(self, str(other)))

    def __enter__(self) -> Path:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def joinpath(self, *others: Any) -> Path:
        """``self / other / ...``."""
        return type(self)(os.path.join(self, *map(str, others)))

    @property
    def name(self) -> Path:
        """The last part."""
        return type(self)(os.path.basename(self))

    @property
    def parent(self) -> Path:
        """All but the last part."""
        return type(self)(os.path.dirname(self))

    @property
    def stem(self) -> Path:
        """The last part without its ending."""
        return type(self)(os.path.splitext(os.path.basename(self))[0])

    namebase = stem

    @property
    def ext(self) -> str:
        """The ending."""
        return os.path.splitext(self)[1]

    suffix = ext

    def basename(self) -> Path:
        """The last part."""
        return self.name

    def dirname(self) -> Path:
        """All but the last part."""
        return self.parent

    def abspath(self) -> Path:
        """From the root."""
        return type(self)(os.path.abspath(self))

    realpath = expand = normpath = absolute = abspath

    def relpath(self, start: str = ".") -> Path:
        """From ``start``."""
        return type(self)(os.path.relpath(self, start))

    def stripext(self) -> Path:
        """Without the ending."""
        return type(self)(os.path.splitext(self)[0])

    def exists(self) -> bool:
        """Whether there is something."""
        return os.path.exists(self)

    def isdir(self) -> bool:
        """Whether it is a folder."""
        return os.path.isdir(self)

    def isfile(self) -> bool:
        """Whether it is a file."""
        return os.path.isfile(self)

    is_dir, is_file = isdir, isfile

    def listdir(self, match: str = "*") -> list[Path]:
        """What is in the folder."""
        return [self / name for name in os.listdir(self) if fnmatch.fnmatch(name, match)]

    glob = listdir

    def dirs(self, match: str = "*") -> list[Path]:
        """The folders in the folder."""
        return [one for one in self.listdir(match) if one.isdir()]

    def files(self, match: str = "*") -> list[Path]:
        """The files in the folder."""
        return [one for one in self.listdir(match) if one.isfile()]

    def walk(self, match: str = "*") -> Iterator[Path]:
        """What is in the folder and in the folders in it."""
        for one in self.listdir():
            if fnmatch.fnmatch(one.name, match):
                yield one
            if one.isdir():
                yield from one.walk(match)

    def walkdirs(self, match: str = "*") -> Iterator[Path]:
        """The folders among these."""
        return (one for one in self.walk(match) if one.isdir())

    def walkfiles(self, match: str = "*") -> Iterator[Path]:
        """The files among these."""
        return (one for one in self.walk(match) if one.isfile())

    def makedirs_p(self, mode: int = 0o777) -> Path:
        """Make the folder, and those above it, where they are not there."""
        os.makedirs(self, exist_ok=True)
        return self

    mkdir_p = makedirs_p

    def mkdir(self, *mode: Any, **how: Any) -> Path:
        """Make the folder."""
        os.makedirs(self, exist_ok=True)
        return self

    makedirs = mkdir

    def open(self, *args: Any, **kwargs: Any) -> Any:
        """The file, opened."""
        return open(self, *args, **kwargs)

    def text(self, *args: Any) -> str:
        """The content of the file."""
        with open(self) as file:
            return file.read()

    def lines(self, *args: Any, **kwargs: Any) -> list[str]:
        """The lines of the file."""
        return self.text().splitlines(True)

    def copy(self, target: str) -> Path:
        """A copy of the file."""
        return type(self)(shutil.copy(self, target))

    def remove(self) -> Path:
        """Without the file."""
        os.remove(self)
        return self

    remove_p = unlink = rmtree = rmtree_p = remove


path = Path
