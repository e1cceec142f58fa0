"""An overlay on the file system: what a run writes goes into its scratch folder, and is found there again.

A run's working directory is the user's own, so a relative path means what it means when the user runs the
script. The sandbox refuses to write there. So every path that Python opens for writing is led into an *upper*
layer in the scratch folder, under its absolute path, and every path that is read is looked for there first;
what the script removes of the *lower* layer, the real file system, is a *whiteout* (the terms are those of
Linux's overlayfs). The upper layer is thrown away with the run.

C code that opens files by itself sees the lower layer: its reads find what is really there, its writes
outside the scratch folder are refused. A link of the lower layer leads to the lower layer.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import functools
import io
import os
import pathlib
import re
import shutil
import stat
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CODE = (".py", ".pyc", ".pyd", ".so", ".pth", ".egg-link", ".dist-info", ".egg-info")
"""Suffixes that the import system looks for, which are never data."""
ASKED = 10_000
"""Absent paths that are remembered, at most."""
LSTAT, MKDIR, RMDIR, REMOVE, RENAME = os.lstat, os.mkdir, os.rmdir, os.remove, os.rename
LISTDIR, SCANDIR, CHDIR, GETCWD = os.listdir, os.scandir, os.chdir, os.getcwd
SYMLINK, OPEN, DESCRIPTOR, STAT = os.symlink, io.open, os.open, os.stat


def failure(code: int, path: str) -> OSError:
    """The error that the system would raise."""
    return OSError(code, os.strerror(code), path)


class Overlay:
    """Maps the paths of a script to those that are really used.

    Args:
        scratch: The folder that the run may write to.
        folders: The project's folders from its root down to the script's own.
        withheld: Matches the names below these that the sandbox does not let be read. To the script they
            are not there, so that it goes on as it does where nobody has such a file.
    """

    def __init__(self, scratch: str, folders: list[str], withheld: re.Pattern[str]) -> None:
        self.scratch = os.path.realpath(scratch)
        self.upper = os.path.join(self.scratch, ".overlay")
        self.folders = [os.path.join(one, "") for one in folders]
        self.withheld = withheld
        self.installed = tuple(os.path.join(one, "") for one in (sys.prefix, sys.base_prefix))
        self.cwd: str | None = None
        """The working directory as the script sees it, where it is one of the upper layer alone."""
        self.whiteouts: set[str] = set()
        """Absolute paths of the lower layer that the script has removed, with all that lies below them."""
        self.absent: dict[str, None] = {}
        """Absolute paths that the script asked for and that are not there, the latest last."""
        self.lacking: set[str] = set()
        """Folders that are not there, and that the script wanted to write a file into."""
        self.process, self.told = os.getpid(), os.path.join(self.scratch, ".absent")

    # -- where a path leads --

    def absolute(self, path: str) -> str:
        """The absolute path, from the working directory as the script sees it."""
        return os.path.normpath(os.path.join(self.cwd or GETCWD(), path))

    def outside(self, path: str) -> str | None:
        """The absolute path, if it is one of the overlay's concern: neither scratch nor a device."""
        absolute = self.absolute(path)
        if (absolute + os.sep).startswith((self.scratch + os.sep, "/dev/", "/proc/")):
            return None
        return absolute

    def upper_path(self, absolute: str) -> str:
        """Where in the upper layer an absolute path lies."""
        return self.upper + os.path.splitdrive(absolute)[1]

    def in_lower(self, absolute: str) -> bool:
        """Whether the script sees what the lower layer has at an absolute path."""
        if self.is_withheld(absolute):
            return False
        at = absolute
        while self.whiteouts and at != os.path.dirname(at):
            if at in self.whiteouts:
                return False
            at = os.path.dirname(at)
        return there(absolute)

    def is_withheld(self, absolute: str) -> bool:
        """Whether the sandbox keeps what lies at an absolute path from the run."""
        if absolute.startswith(self.installed):
            return False
        path = os.path.join(absolute, "")
        around = [folder for folder in self.folders if path.startswith(folder)]
        return bool(around) and any(
            self.withheld.match(name) for name in path[len(around[-1]) :].split(os.sep) if name
        )

    def reading(self, path: str) -> str:
        """The place to read ``path`` from; one where there is nothing, if the script sees nothing there."""
        absolute = self.outside(path)
        if absolute is None:
            return path
        upper = self.upper_path(absolute)
        if there(upper) or not self.in_lower(absolute):
            return upper
        return path if self.cwd is None else absolute

    def exists(self, path: str) -> bool:
        """Whether the script sees anything at ``path``."""
        return there(self.reading(path))

    def is_folder(self, path: str) -> bool:
        """Whether the script sees a folder at ``path``."""
        try:
            return stat.S_ISDIR(STAT(self.reading(path)).st_mode)
        except (OSError, ValueError):
            return False

    def writing(self, path: str, keep: bool = False) -> str:
        """The place to write ``path`` to; with ``keep`` the file that is there is copied up first.

        Raises:
            OSError: if the folder of ``path`` is none.
        """
        absolute = self.outside(path)
        if absolute is None:
            return path
        upper, folder = self.upper_path(absolute), os.path.dirname(absolute)
        if not there(upper):
            if self.is_folder(folder):
                self.make_folders(os.path.dirname(upper))
            elif self.exists(folder):
                raise failure(errno.ENOTDIR, path)
            else:
                self.lacking.add(folder)
            if keep and self.in_lower(absolute) and not self.is_folder(absolute):
                shutil.copyfile(absolute, upper)
        return upper

    def copy_up(self, absolute: str) -> str:
        """Have all that the script sees at an absolute path in the upper layer; its place there."""
        if not self.is_folder(absolute):
            return self.writing(absolute, keep=True)
        upper = self.upper_path(absolute)
        names = self.names(absolute)
        self.make_folders(upper)
        for name in names:
            self.copy_up(os.path.join(absolute, name))
        return upper

    def make_folders(self, folder: str) -> None:
        """Make a folder of the upper layer with those around it."""
        missing = []
        while not there(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for one in reversed(missing):
            MKDIR(one)

    # -- what folders hold --

    def layers(self, path: str) -> list[str]:
        """The folders that together are the one at ``path``, the upper one first."""
        absolute = self.outside(path)
        if absolute is None:
            return [path]
        upper = self.upper_path(absolute)
        lower = [path if self.cwd is None else absolute] if self.in_lower(absolute) else []
        return [*([upper] if there(upper) else []), *lower]

    def names(self, path: str) -> list[str]:
        """The names in a folder."""
        found = dict.fromkeys(name for layer in self.layers(path) for name in LISTDIR(layer))
        return [name for name in found if not self.is_hidden(path, name)]

    def is_hidden(self, folder: str, name: str) -> bool:
        """Whether the script does not see an entry that the lower layer has in a folder."""
        absolute = self.absolute(os.path.join(folder, name))
        return not there(self.upper_path(absolute)) and not self.in_lower(absolute)

    # -- what is asked for --

    def note(self, path: str) -> None:
        """Remember that the script asked for a path that is not there."""
        absolute = self.outside(path)
        if absolute is None or absolute.endswith(CODE) or len(self.absent) >= ASKED:
            return
        if (absolute + os.sep).startswith(self.installed) or _asked_by_a_library():
            return
        self.absent.pop(absolute, None)
        self.absent[absolute] = None
        if os.getpid() != self.process:
            # What a process that the script has forked asks for, its parent does not see.
            with OPEN(self.told, "a", encoding="utf-8") as file:
                file.write(absolute + "\n")

    def asked(self) -> list[str]:
        """The absent paths that the script and its processes asked for, the latest last."""
        with contextlib.suppress(OSError), OPEN(self.told, encoding="utf-8") as file:
            self.absent.update(dict.fromkeys(file.read().splitlines()[:ASKED]))
        return list(self.absent)

    def install(self) -> None:
        """Put the overlay under the functions by which Python gets at files."""
        _opening(self)
        _looking(self)
        _listing(self)
        _changing(self)
        _moving(self)
        # Removing a tree by descriptors goes past paths.
        shutil._use_fd_functions = False  # type: ignore[attr-defined]


def there(path: str) -> bool:
    """Whether the file system has anything at ``path``, if only a link to nowhere."""
    try:
        LSTAT(path)
    except (OSError, ValueError):
        return False
    return True


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
    """Within it, an error names a file as the script does, not as it lies in the upper layer."""
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


@functools.lru_cache(None)
def captured() -> list[tuple[dict[Any, Any], Any]]:
    """Where modules have taken ``open`` for themselves when they were imported: a mapping, and its key."""
    found: list[tuple[dict[Any, Any], Any]] = []
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict) and module is not sys.modules[__name__]:
            found += [(names, name) for name, one in list(names.items()) if one is OPEN]
    datasource = sys.modules.get("numpy.lib._datasource")
    openers = getattr(getattr(datasource, "_file_openers", None), "_file_openers", {})
    return found + [(openers, name) for name, one in openers.items() if one is OPEN]


def _opening(overlay: Overlay) -> None:
    def place_to_write(path: str, keep: bool, anew: bool) -> str:
        if overlay.outside(path) is not None:
            if overlay.is_folder(path):
                raise failure(errno.EISDIR, path)
            if anew and overlay.exists(path):
                raise failure(errno.EEXIST, path)
        return overlay.writing(path, keep)

    def place_to_read(path: str) -> str:
        place = overlay.reading(path)
        if not there(place):
            overlay.note(path)
        return place

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        path = text_of(file)
        if path is None or not isinstance(mode, str):
            return OPEN(file, mode, *args, **kwargs)
        with named(path):
            if any(letter in mode for letter in "wax+"):
                place = place_to_write(path, keep="w" not in mode and "x" not in mode, anew="x" in mode)
            else:
                place = place_to_read(path)
            return OPEN(place, mode, *args, **kwargs)

    def descriptor(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        text = text_of(path)
        if text is None or kwargs.get("dir_fd") is not None:
            return DESCRIPTOR(path, flags, *args, **kwargs)
        with named(text):
            if flags & WRITES:
                place = place_to_write(text, not flags & os.O_TRUNC, bool(flags & os.O_EXCL))
            else:
                place = place_to_read(text)
            return DESCRIPTOR(place, flags, *args, **kwargs)

    for mapping, name in captured():
        mapping[name] = opened
    builtins.open = io.open = opened
    _replace("open", descriptor)


def _looking(overlay: Overlay) -> None:
    def look(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def function(path: Any, *args: Any, **kwargs: Any) -> Any:
            text = text_of(path)
            if text is None or kwargs.get("dir_fd") is not None:
                return real(path, *args, **kwargs)
            place = overlay.reading(text)
            if not there(place):
                overlay.note(text)
            with named(text):
                return real(place, *args, **kwargs)

        return function

    for name in ("stat", "lstat", "access", "readlink"):
        _replace(name, look(name, getattr(os, name)))


class _Entry:
    """An entry of a folder, under the path that the script has for it."""

    def __init__(self, folder: str, entry: os.DirEntry[str]) -> None:
        self.name = entry.name
        self.path = os.path.join(folder, entry.name)
        self._entry = entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


class _Entries:
    """The entries of a folder, as ``os.scandir`` gives them."""

    def __init__(self, entries: list[_Entry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def close(self) -> None:
        """Nothing is left open."""


def _listing(overlay: Overlay) -> None:
    def layers(path: str) -> list[str]:
        found = overlay.layers(path)
        # A folder with nothing but hidden files keeps a place for data that is not there.
        if not found or (len(found) == 1 and all(name[:1] == "." for name in LISTDIR(found[0]))):
            overlay.note(path)
        if not found:
            raise failure(errno.ENOENT, path)
        return found

    def listdir(path: Any = ".") -> list[Any]:
        text = text_of(path)
        if text is None or isinstance(path, bytes):  # Whoever asks by bytes is answered in bytes.
            return LISTDIR(path)
        with named(text):
            layers(text)
            return overlay.names(text)

    def scandir(path: Any = ".") -> Any:
        text = text_of(path)
        if text is None or isinstance(path, bytes) or overlay.outside(text) is None:
            return SCANDIR(path)
        found: dict[str, _Entry] = {}
        with named(text):
            for layer in layers(text):
                with SCANDIR(layer) as entries:
                    for entry in entries:
                        if entry.name not in found and not overlay.is_hidden(text, entry.name):
                            found[entry.name] = _Entry(text, entry)
        return _Entries(list(found.values()))

    _replace("listdir", listdir)
    _replace("scandir", scandir)


def _changing(overlay: Overlay) -> None:
    def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
        text = text_of(path)
        if text is None or kwargs.get("dir_fd") is not None or overlay.outside(text) is None:
            MKDIR(path, *args, **kwargs)
            return
        if overlay.exists(text):
            raise failure(errno.EEXIST, text)
        folder = os.path.dirname(overlay.absolute(text))
        if not overlay.exists(folder):
            overlay.note(folder)
            raise failure(errno.ENOENT, text)
        with named(text):
            MKDIR(overlay.writing(text))

    def removing(real: Callable[..., None], folders: bool) -> Callable[..., None]:
        def remove(path: Any, *args: Any, **kwargs: Any) -> None:
            text = text_of(path)
            absolute = None if text is None else overlay.outside(text)
            if text is None or absolute is None or kwargs.get("dir_fd") is not None:
                return real(path, *args, **kwargs)
            if not overlay.exists(text):
                raise failure(errno.ENOENT, text)
            if overlay.is_folder(text) and not os.path.islink(text) and not folders:
                raise failure(errno.EISDIR, text)
            if folders and not overlay.is_folder(text):
                raise failure(errno.ENOTDIR, text)
            if folders and overlay.names(text):
                raise failure(errno.ENOTEMPTY, text)
            lower = overlay.in_lower(absolute)
            if there(overlay.upper_path(absolute)):
                real(overlay.upper_path(absolute))
            if lower:
                overlay.whiteouts.add(absolute)
            return None

        return remove

    def attributes(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(path: Any, *args: Any, **kwargs: Any) -> Any:
            text = text_of(path)
            if text is None or overlay.outside(text) is None:
                return real(path, *args, **kwargs)
            # The sandbox lets these do nothing, and say that they did.
            if not overlay.exists(text):
                raise failure(errno.ENOENT, text)
            place = overlay.reading(text)
            return real(overlay.writing(text, keep=True) if real.__name__ == "truncate" else place, *args)

        return change

    _replace("mkdir", mkdir)
    _replace("rmdir", removing(RMDIR, folders=True))
    for name in ("remove", "unlink"):
        _replace(name, removing(REMOVE, folders=False))
    for name in ("truncate", "chmod", "utime"):
        _replace(name, attributes(getattr(os, name)))


def _moving(overlay: Overlay) -> None:
    def rename(source: Any, target: Any, **kwargs: Any) -> None:
        old, new = text_of(source), text_of(target)
        if old is None or new is None or (overlay.outside(old) is None and overlay.outside(new) is None):
            return RENAME(source, target, **kwargs)
        if not overlay.exists(old):
            raise failure(errno.ENOENT, old)
        if overlay.is_folder(new) and not overlay.is_folder(old):
            raise failure(errno.EISDIR, new)
        if overlay.is_folder(new) and overlay.names(new):
            raise failure(errno.ENOTEMPTY, new)
        origin, goal = overlay.outside(old), overlay.outside(new)
        lower = origin is not None and overlay.in_lower(origin)
        covered = goal is not None and overlay.in_lower(goal)
        with named(new):
            place = old if origin is None else overlay.copy_up(origin)
            RENAME(place, overlay.writing(new))
        if origin is not None and lower:
            overlay.whiteouts.add(origin)
        if goal is not None and covered:
            # What lay there is covered with all that was below it.
            overlay.whiteouts.add(goal)
        return None

    def symlink(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        old, new = text_of(source), text_of(target)
        if old is None or new is None or overlay.outside(new) is None:
            return SYMLINK(source, target, *args, **kwargs)
        if overlay.exists(new):
            raise failure(errno.EEXIST, new)
        meant = os.path.normpath(os.path.join(os.path.dirname(overlay.absolute(new)), old))
        with named(new):
            # What it points at may come to be later: in the upper layer.
            return SYMLINK(overlay.reading(meant), overlay.writing(new))

    def link(source: Any, target: Any, **kwargs: Any) -> None:
        old, new = text_of(source), text_of(target)
        assert old is not None and new is not None
        shutil.copyfile(overlay.reading(old), overlay.writing(new))

    def chdir(path: Any) -> None:
        text = text_of(path)
        absolute = None if text is None else overlay.outside(text)
        if text is None or absolute is None:
            CHDIR(path)
            overlay.cwd = None
        elif overlay.in_lower(absolute):
            with named(text):
                CHDIR(absolute)
            overlay.cwd = None
        else:
            with named(text):
                CHDIR(overlay.upper_path(absolute))
            overlay.cwd = absolute

    def getcwd() -> str:
        return overlay.cwd or GETCWD()

    for name in ("rename", "replace"):
        _replace(name, rename)
    _replace("symlink", symlink)
    _replace("link", link)
    _replace("chdir", chdir)
    _replace("getcwd", getcwd)
