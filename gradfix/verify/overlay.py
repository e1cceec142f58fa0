"""A layer over the file system: what a run writes goes into its scratch folder, and is found there again.

Loaded by its path in the user's interpreter (see ``probe.py``): standard library only, no syntax newer than
Python 3.9. A run's working directory is the user's own, so a relative path means what it means when the
user runs the script. The sandbox refuses to write there. So every path that Python opens for writing is
led into the layer, under its absolute path, and every path that is read is looked for in the layer first.
The layer is thrown away with the run.

C code that opens files by itself sees the real file system: its reads find what is really there, its
writes outside the scratch folder are refused.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import pathlib
import re
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CODE = (".py", ".pyc", ".pyd", ".so", ".pth", ".egg-link", ".dist-info", ".egg-info")
"""Endings of what the import system looks for; nobody's data."""
ASKED = 10_000
"""Absent paths that are remembered, at most."""


class Overlay:
    """Maps the paths of a script to those that are really used.

    Args:
        scratch: The folder that the run may write to.
        root: The project's folder.
        withheld: Matches the names in it that the sandbox does not let be read. To the script they are not
            there, so that it goes on as it does where nobody has such a file.
    """

    def __init__(self, scratch: str, root: str, withheld: re.Pattern[str]) -> None:
        self.scratch = os.path.realpath(scratch)
        self.root = os.path.join(root, "")
        self.withheld = withheld
        self.layer = os.path.join(self.scratch, ".overlay")
        self.removed: set[str] = set()
        """Absolute paths of the real file system that the script has removed."""
        self.absent: dict[str, None] = {}
        """Absolute paths that the script asked for and that are not there, the latest last."""
        self.read: dict[str, None] = {}
        """Absolute paths in the layer that the script has opened, the latest last."""
        self.lacking: set[str] = set()
        """Folders that are not there, and that the script wanted to write a file into."""
        self.process, self.told = os.getpid(), os.path.join(self.scratch, ".absent")
        self._stat, self._mkdir, self._open = os.stat, os.mkdir, io.open

    def there(self, path: str) -> bool:
        """Whether the real file system has anything at ``path``."""
        try:
            self._stat(path)
        except (OSError, ValueError):
            return False
        return True

    def exists(self, path: str) -> bool:
        """Whether the script sees anything at ``path``."""
        return self.there(self.reading(path))

    def outside(self, path: str) -> str | None:
        """The absolute path, if it is one of the layer's concern: neither scratch nor a device."""
        absolute = os.path.abspath(path)
        if (absolute + os.sep).startswith((self.scratch + os.sep, "/dev/", "/proc/")):
            return None
        return absolute

    def layered(self, absolute: str) -> str:
        """Where in the layer an absolute path lies."""
        return os.path.join(self.layer, absolute.lstrip(os.sep).replace(":", ""))

    def reading(self, path: str) -> str:
        """The place to read ``path`` from."""
        absolute = self.outside(path)
        if absolute is None:
            return path
        layered = self.layered(absolute)
        covered = absolute in self.removed or self.there(layered) or self.is_withheld(absolute)
        return layered if covered else path

    def is_withheld(self, absolute: str) -> bool:
        """Whether the sandbox keeps what lies at an absolute path from the run."""
        if not absolute.startswith(self.root):
            return False
        return any(self.withheld.match(part) for part in absolute[len(self.root) :].split(os.sep))

    def covers(self, folder: str) -> bool:
        """Whether a folder may hold what the script does not see."""
        absolute = os.path.join(os.path.abspath(folder), "")
        return absolute.startswith(self.root) or any(one.startswith(absolute) for one in self.removed)

    def writing(self, path: str, keep: bool = False) -> str:
        """The place to write ``path`` to; with ``keep`` what is there is copied into it first."""
        absolute = self.outside(path)
        if absolute is None:
            return path
        layered = self.layered(absolute)
        if not self.there(layered):
            if self.exists(os.path.dirname(absolute)):
                self.make_folders(os.path.dirname(layered))
            else:
                self.lacking.add(os.path.dirname(absolute))
            if keep and absolute not in self.removed and self.reading(path) == path and self.there(path):
                shutil.copyfile(absolute, layered)
        self.removed.discard(absolute)
        return layered

    def make_folders(self, folder: str) -> None:
        """Make a folder of the layer with those around it."""
        missing = []
        while not self.there(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for one in reversed(missing):
            self._mkdir(one)

    def note(self, path: str) -> None:
        """Remember that the script asked for a path that is not there."""
        absolute = self.outside(path)
        if absolute is None or absolute.endswith(CODE) or len(self.absent) >= ASKED:
            return
        installed = (sys.prefix + os.sep, sys.base_prefix + os.sep)
        if (absolute + os.sep).startswith(installed) or _asked_by_a_library():
            return
        self.absent.pop(absolute, None)
        self.absent[absolute] = None
        if os.getpid() != self.process:
            # What a process that the script has forked asks for, its parent does not see.
            with self._open(self.told, "a", encoding="utf-8") as file:
                file.write(absolute + "\n")

    def asked(self) -> list[str]:
        """The absent paths that the script and its processes asked for, the latest last."""
        with contextlib.suppress(OSError), self._open(self.told, encoding="utf-8") as file:
            self.absent.update(dict.fromkeys(file.read().splitlines()[:ASKED]))
        return list(self.absent)

    def opening(self, path: str) -> str:
        """The place to read the content of ``path`` from."""
        place = self.reading(path)
        if not self.there(place):
            self.note(path)
        elif place != path and (absolute := self.outside(path)) is not None:
            self.read.pop(absolute, None)
            self.read[absolute] = None
        return place

    def install(self) -> None:
        """Put the layer under the functions by which Python gets at files."""
        _opening(self)
        _looking(self)
        _listing(self)
        _changing(self)
        # Removing a tree by descriptors goes past paths.
        shutil._use_fd_functions = False  # type: ignore[attr-defined]


STANDARD = os.path.dirname(os.__file__) + os.sep
LIBRARIES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def _asked_by_a_library() -> bool:
    """Whether a library asks for what is its own, such as its settings; not one that reads data."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if any(one in name for one in LIBRARIES):
            return (os.sep + "torchvision" + os.sep) not in name
        if name != __file__ and not name.startswith((STANDARD, "<frozen")):
            return False
        frame = frame.f_back
    return False


def text_of(path: Any) -> str | None:
    """A path as text, ``None`` for a descriptor."""
    return os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else None


@contextlib.contextmanager
def named(path: str) -> Iterator[None]:
    """Within it, an error names a file as the script does, not as it lies in the layer."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


def _replace(name: str, function: Any) -> None:
    """Put ``function`` in the place of one of :mod:`os`."""
    real = getattr(os, name)
    function.__name__ = name
    for supported in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if real in supported:
            supported.add(function)
    setattr(os, name, function)
    # Before Python 3.11 pathlib has taken them from there already.
    accessor = getattr(pathlib, "_NormalAccessor", None)
    if accessor is not None and name in vars(accessor):
        setattr(accessor, name, staticmethod(function))


def _opening(overlay: Overlay) -> None:
    real_open, real_descriptor = io.open, os.open

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        path = text_of(file)
        if path is None or not isinstance(mode, str):
            return real_open(file, mode, *args, **kwargs)
        if any(letter in mode for letter in "wax+"):
            place = overlay.writing(path, keep="w" not in mode and "x" not in mode)
        else:
            place = overlay.opening(path)
        with named(path):
            return real_open(place, mode, *args, **kwargs)

    def descriptor(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        text = text_of(path)
        if text is None or kwargs.get("dir_fd") is not None:
            return real_descriptor(path, flags, *args, **kwargs)
        place = (
            overlay.writing(text, keep=not flags & os.O_TRUNC) if flags & WRITES else overlay.opening(text)
        )
        return real_descriptor(place, flags, *args, **kwargs)

    builtins.open = io.open = opened
    _replace("open", descriptor)


def _looking(overlay: Overlay) -> None:
    def look(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def function(path: Any, *args: Any, **kwargs: Any) -> Any:
            text = text_of(path)
            if text is None or kwargs.get("dir_fd") is not None:
                return real(path, *args, **kwargs)
            place = overlay.reading(text)
            if not overlay.there(place):
                overlay.note(text)
            with named(text):
                return real(place, *args, **kwargs)

        return function

    for name in ("stat", "lstat", "access", "readlink", "chdir"):
        _replace(name, look(name, getattr(os, name)))


class _Entries:
    """The entries of a folder, those of the layer in the place of those that they cover."""

    def __init__(self, entries: Iterator[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is left open."""


def _listing(overlay: Overlay) -> None:
    real_list, real_scan = os.listdir, os.scandir

    def places(path: str) -> list[str]:
        """The folders that together are the one at ``path``, the layer's first."""
        absolute = overlay.outside(path)
        if absolute is None:
            return [path]
        layered = overlay.layered(absolute)
        real = [] if absolute in overlay.removed or not overlay.there(path) else [path]
        found = [*([layered] if overlay.there(layered) else []), *real]
        # A folder with nothing but hidden files keeps a place for data that is not there.
        if not found or (found == [path] and all(name[:1] == "." for name in real_list(path))):
            overlay.note(path)
        return found or [path]

    def hidden(path: str, name: str) -> bool:
        absolute = os.path.join(os.path.abspath(path), name)
        covered = absolute in overlay.removed or overlay.is_withheld(absolute)
        return covered and not overlay.there(overlay.layered(absolute))

    def listdir(path: Any = ".") -> list[Any]:
        text = text_of(path)
        if text is None or isinstance(path, bytes):  # Whoever asks by bytes is answered in bytes.
            return real_list(path)
        with named(text):
            names = dict.fromkeys(name for place in places(text) for name in real_list(place))
        return [name for name in names if not hidden(text, name)]

    def scandir(path: Any = ".") -> Any:
        text = text_of(path)
        folders = [] if text is None else places(text)
        if text is None or isinstance(path, bytes) or (folders == [text] and not overlay.covers(text)):
            return real_scan(path)
        found: dict[str, Any] = {}
        for place in folders:
            with named(text), real_scan(place) as entries:
                for entry in entries:
                    if not hidden(text, entry.name):
                        found.setdefault(entry.name, entry)
        return _Entries(iter(found.values()))

    _replace("listdir", listdir)
    _replace("scandir", scandir)


def _changing(overlay: Overlay) -> None:
    real_mkdir, real_rename, real_symlink = os.mkdir, os.rename, os.symlink
    real_remove, real_rmdir = os.remove, os.rmdir

    def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
        text = text_of(path)
        if text is None or kwargs.get("dir_fd") is not None or overlay.outside(text) is None:
            real_mkdir(path, *args, **kwargs)
        elif overlay.exists(text):
            raise FileExistsError(17, os.strerror(17), text)
        elif not overlay.exists(os.path.dirname(os.path.abspath(text))):
            overlay.note(os.path.dirname(os.path.abspath(text)))
            raise FileNotFoundError(2, os.strerror(2), text)
        else:
            real_mkdir(overlay.writing(text))

    def removing(real: Callable[..., None]) -> Callable[..., None]:
        def remove(path: Any, *args: Any, **kwargs: Any) -> None:
            text = text_of(path)
            absolute = None if text is None else overlay.outside(text)
            if absolute is None or kwargs.get("dir_fd") is not None:
                return real(path, *args, **kwargs)
            layered = overlay.layered(absolute)
            if overlay.there(layered):
                real(layered)
            elif absolute in overlay.removed or not overlay.there(absolute):
                raise FileNotFoundError(2, os.strerror(2), text)
            if overlay.there(absolute):
                overlay.removed.add(absolute)
            return None

        return remove

    def rename(source: Any, target: Any, **kwargs: Any) -> None:
        old, new = text_of(source), text_of(target)
        if old is None or new is None or (overlay.outside(old) is None and overlay.outside(new) is None):
            return real_rename(source, target, **kwargs)
        place = overlay.reading(old)
        if place == old and overlay.outside(old) is not None:
            place = overlay.writing(old, keep=True)
        real_rename(place, overlay.writing(new))
        absolute = overlay.outside(old)
        if absolute is not None and overlay.there(absolute):
            overlay.removed.add(absolute)
        return None

    def attributes(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def change(path: Any, *args: Any, **kwargs: Any) -> Any:
            text = text_of(path)
            keep = text is not None and os.path.isfile(text)
            return real(path if text is None else overlay.writing(text, keep=keep), *args, **kwargs)

        return change

    def link(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        old, new = text_of(source), text_of(target)
        if old is None or new is None or overlay.outside(new) is None:
            return real_symlink(source, target, *args, **kwargs)
        meant = os.path.join(os.path.dirname(os.path.abspath(new)), old)
        return real_symlink(os.path.abspath(overlay.reading(meant)), overlay.writing(new))

    _replace("mkdir", mkdir)
    _replace("symlink", link)
    for name, real in (("remove", real_remove), ("unlink", real_remove), ("rmdir", real_rmdir)):
        _replace(name, removing(real))
    for name in ("rename", "replace"):
        _replace(name, rename)
    for name in ("truncate", "chmod", "utime"):
        _replace(name, attributes(name, getattr(os, name)))
