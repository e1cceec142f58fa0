"""Reading and writing files safely, even if another process replaces them meanwhile.

Reading opens what is there without waiting, asks the descriptor whether it is a regular file, and takes no
more than a cap: a named pipe, a device, ``/dev/zero`` behind a link and an endless file are each refused with
a word.

Writing goes through a descriptor of the folder. The new content is a file of its own, made under a name that
nothing has, with the mode, the owner and the extended attributes of the very file that it replaces, read from
and given to descriptors. It takes that file's place in one step, and only if that is still the same file with
the same content. So whoever may write to the folder too gets nothing of ours, or of the superuser's, by
swapping one file for another.

What is refused is an :class:`OSError`; :func:`told` says it in words. Only the standard library is imported.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType

try:
    import fcntl
except ImportError:  # Windows: nothing is told apart there, and so nothing is swept.
    fcntl = None  # type: ignore[assignment]

LARGEST = 64 << 20
"""Most bytes that are read of a file whose reader names no other cap."""

_CHUNK = 1 << 20
_OPENED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _OPENED
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _OPENED
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _OPENED
_PASSED = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _OPENED
"""For folders on the way to another one: they need not be readable."""
_BY_DESCRIPTOR = {os.open, os.stat, os.mkdir, os.rename, os.unlink, os.access} <= os.supports_dir_fd
"""Whether a folder can be held open and worked in; on Windows, paths have to do."""

_LEFT = re.compile(r"\.gradfix-([0-9a-f]{1,16})-[0-9a-f]{16}\.tmp")
"""The name of a file that is being written: its number, and what makes it one that nothing has."""

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Refused(OSError):
    """What is there is not touched. The message says why: a sentence about the file, without its subject."""

    def __init__(self, message: str, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__(errno.EINVAL, message, None if path is None else os.fspath(path))
        self.message = message


class TooLarge(Refused):
    """There is more than is read."""


def describe_error(error: OSError, cannot: str = "cannot be read") -> str:
    """``error`` as a sentence about a file, without its subject."""
    if isinstance(error, Refused):
        return error.message
    name = error.filename
    if isinstance(error, FileNotFoundError) and isinstance(name, str | bytes) and os.path.islink(name):
        return f"{cannot}: a symbolic link to a file that does not exist"
    return f"{cannot}: {error.strerror or error}"


# ---------------------------------------------------------------------------- reading

_rewritten: Mapping[str, bytes] = {}


@contextmanager
def rewritten(contents: Mapping[str, bytes]) -> Iterator[None]:
    """Let :func:`read` and :func:`stamp` see files as if they held this already, by their real paths."""
    global _rewritten
    before, _rewritten = _rewritten, {**_rewritten, **contents}
    try:
        yield
    finally:
        _rewritten = before


def now_rewritten() -> Mapping[str, bytes]:
    """What :func:`rewritten` lets files hold."""
    return _rewritten


def stamp(path: str) -> tuple[int, int]:
    """What is another one as soon as the file at ``path`` holds something else; its size is the second part.

    Raises:
        OSError: There is no such file.
    """
    if _rewritten and (held := _rewritten.get(os.path.realpath(path))) is not None:
        return -1 - zlib.crc32(held), len(held)
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


def read(
    path: str | os.PathLike[str], most: int = LARGEST, *, follow: bool = True, dir_fd: int | None = None
) -> bytes:
    """The content of a regular file.

    Args:
        path: The file; links are followed if ``follow``.
        most: The most bytes that it may have.
        follow: Whether the last part of ``path`` may be a link.
        dir_fd: The folder that a relative ``path`` counts from.

    Raises:
        Refused: It is no regular file, or has more than ``most`` bytes (:class:`TooLarge`).
        OSError: It cannot be read.
    """
    if _rewritten and dir_fd is None and (held := _rewritten.get(os.path.realpath(path))) is not None:
        return held
    descriptor, status = open_regular(path, follow=follow, dir_fd=dir_fd)
    try:
        if status.st_size > most:
            raise TooLarge(f"is too large to be read: {_size(status.st_size)}", path)
        return _content(descriptor, status.st_size, most, path)
    finally:
        os.close(descriptor)


def open_regular(
    path: str | os.PathLike[str], *, follow: bool = True, dir_fd: int | None = None
) -> tuple[int, os.stat_result]:
    """A descriptor of a regular file, to be closed by the caller, and its status.

    Raises:
        Refused: It is no regular file.
        OSError: It cannot be opened.
    """
    # Asked before it is opened, for opening a device may set it going; and again of what was opened.
    _only_regular(os.stat(path, dir_fd=dir_fd, follow_symlinks=follow), path)
    descriptor = os.open(path, _READ if follow else _READ | _NO_LINK, dir_fd=dir_fd)
    try:
        status = os.fstat(descriptor)
        _only_regular(status, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def _only_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((f" but {name}" for is_kind, name in _KINDS if is_kind(status.st_mode)), "")
        raise Refused(f"is not a regular file{kind}", path)


def _content(descriptor: int, expected: int, most: int, path: str | os.PathLike[str]) -> bytes:
    """What is left to read, to its end: a file may grow, and those of ``/proc`` say that they are empty."""
    parts: list[bytes] = []
    left, wanted = most + 1, expected + 1
    while left and (part := os.read(descriptor, min(left, wanted))):
        parts.append(part)
        left -= len(part)
        if len(part) == expected:
            break  # Less than was asked for: that is its end.
        expected, wanted = 0, _CHUNK
    if not left:
        raise TooLarge(f"is too large to be read: more than {_size(most)}", path)
    return b"".join(parts)


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


# ---------------------------------------------------------------------------- writing


def replace(path: str | os.PathLike[str], before: bytes, after: bytes) -> None:
    """Write ``after`` to the file at ``path``, which held ``before``; whole or not at all.

    A link is followed to its target. What takes the target's place has its mode, its owner (where that is
    allowed) and its extended attributes.

    Raises:
        Refused: It no longer holds ``before``, is read-only, is no regular file, has further names (hard
            links), or has something that cannot be kept.
        OSError: It cannot be written.
    """
    folder, name = os.path.split(os.path.realpath(path))
    with Folder(folder) as opened:
        opened.replace(name, before, after)


def save(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path``, a file of our own, with the folders that it needs; no link is followed.

    ``/dev/stdout``, ``/dev/stderr``, ``/dev/null`` and what is below ``/dev/fd`` are written to as they are.

    Raises:
        Refused: Something other than a regular file is there, or a link is in the way (:func:`folder_for`).
        OSError: It cannot be written.
    """
    place = os.path.abspath(path)
    if (stream := _stream(place)) is not None:
        try:
            _write_all(stream, data)
        finally:
            os.close(stream)
        return
    with folder_for(os.path.dirname(place)) as folder:
        folder.save(os.path.basename(place), data)


def _stream(place: str) -> int | None:
    """A descriptor for what a path below ``/dev`` means; ``None`` for every other path."""
    if place == os.devnull:
        return os.open(place, os.O_WRONLY | _OPENED)
    folder, name = os.path.split(place)
    number = {"/dev/stdout": "1", "/dev/stderr": "2"}.get(place, name if folder == "/dev/fd" else "")
    return os.dup(int(number)) if number.isdecimal() else None


def folder_for(path: str | os.PathLike[str], *, make: bool = True) -> Folder:
    """The folder at ``path``, to write files of our own to; made where it is missing, if it is to be.

    Below the current folder, and below the outermost git repository around ``path``, no link is followed:
    what lies there may have come with the code. Above, links are the user's own.

    Raises:
        Refused: A link is in the way.
        OSError: It cannot be made or opened.
    """
    place = os.path.abspath(path)
    base = _own(place)
    if make:
        os.makedirs(base, exist_ok=True)
    folder = Folder(base)
    for part in filter(None, os.path.relpath(place, base).split(os.sep)):
        if part != os.curdir:
            with folder as outer:
                folder = outer.inner(part, 0o777 if make else None)
    return folder


def folder_of(path: str) -> Folder:
    """The folder of the file at ``path``, which was its real path: no part of it may be a link now.

    Raises:
        Refused: One is.
        OSError: It is not there, or cannot be opened.
    """
    folder = os.path.dirname(path)
    if not (_BY_DESCRIPTOR and hasattr(os, "O_PATH")):
        if os.path.realpath(folder) != folder:
            raise Refused(f"is not where it was: a part of {folder} is a symbolic link now", path)
        return Folder(folder)
    place = os.sep
    at = os.open(place, _PASSED)
    try:
        for part in filter(None, folder.split(os.sep)):
            place = os.path.join(place, part)
            if stat.S_ISLNK(os.stat(part, dir_fd=at, follow_symlinks=False).st_mode):
                raise Refused(f"is not where it was: {place} is a symbolic link now", path)
            outer, at = at, os.open(part, _PASSED | _NO_LINK, dir_fd=at)
            os.close(outer)
        found = Folder(os.curdir, dir_fd=at)
    finally:
        os.close(at)
    found.path = folder
    return found


def must_be_ours(path: str | os.PathLike[str]) -> None:
    """Refuse to make a folder at ``path`` in what belongs to somebody else, as the superuser could.

    Raises:
        Refused: The folder, or the nearest one around it that is there, is somebody else's.
    """
    place = os.path.abspath(path)
    while not os.path.exists(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    if hasattr(os, "geteuid") and os.stat(place).st_uid not in (0, os.geteuid()):
        raise Refused(f"cannot be made: {place} belongs to somebody else", place)


def _own(place: str) -> str:
    """The part of the path ``place`` in which links are the user's own."""
    here = os.path.abspath(os.curdir)
    ancestors = [place]
    while (above := os.path.dirname(ancestors[-1])) != ancestors[-1]:
        ancestors.append(above)
    for folder in reversed(ancestors):
        if folder == here or os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return place


class Folder:
    """A folder that is held open: what is done in it is done in this one, whatever its path comes to mean."""

    def __init__(self, path: str, *, follow: bool = True, dir_fd: int | None = None) -> None:
        """Open the folder at ``path``; ``follow`` says whether the last part of it may be a link."""
        self.path = path
        self._swept = False
        self._descriptor: int | None = None
        if _BY_DESCRIPTOR:
            self._descriptor = os.open(path, _FOLDER if follow else _FOLDER | _NO_LINK, dir_fd=dir_fd)

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def must_be_private(self) -> None:
        """Refuse a folder that belongs to somebody else, or that others may read or write to."""
        if self._descriptor is not None:
            status = os.fstat(self._descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise Refused(f"cannot be kept: {self.path} is not a folder of yours alone", self.path)

    def inner(self, name: str, mode: int | None = 0o777) -> Folder:
        """The folder ``name`` in this one, made with ``mode`` where it is missing, if there is a mode.

        Raises:
            Refused: It is a link.
        """
        if mode is not None:
            with suppress(FileExistsError):
                os.mkdir(self._name(name), mode, dir_fd=self._descriptor)
        place = os.path.join(self.path, name)
        if (status := self.status(name)) is not None and stat.S_ISLNK(status.st_mode):
            raise Refused(_through_a_link(place))
        found = Folder(self._name(name), follow=False, dir_fd=self._descriptor)
        found.path = place
        return found

    def names(self) -> list[str]:
        """What is in it."""
        return sorted(os.listdir(self.path if self._descriptor is None else self._descriptor))

    def status(self, name: str) -> os.stat_result | None:
        """What ``name`` is, links not followed; ``None`` if there is nothing."""
        try:
            return os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def read(self, name: str, most: int = LARGEST) -> bytes:
        """The content of the file ``name``, which may not be a link; see :func:`read`."""
        return read(self._name(name), most, follow=False, dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove the file ``name``; a link is removed, not what it leads to."""
        os.unlink(self._name(name), dir_fd=self._descriptor)

    def save(self, name: str, data: bytes, mode: int = 0o666) -> None:
        """Write ``data`` as the file ``name``, whole or not at all; a file of this name keeps its mode.

        A new one gets ``mode``, less what the user's mask takes away.

        Raises:
            Refused: ``name`` is there, and no regular file or read-only.
            OSError: It cannot be written.
        """
        known = self.status(name)
        if known is not None and stat.S_ISLNK(known.st_mode):
            raise Refused(_through_a_link(name))
        if known is not None:
            _only_regular(known, name)
            if not known.st_mode & 0o222:
                raise Refused("cannot be written: it is read-only")

        def finish(new: int) -> None:
            if known is not None and hasattr(os, "fchmod"):
                os.fchmod(new, known.st_mode & 0o777)

        self._put(name, data, mode, finish)

    def replace(self, name: str, before: bytes, after: bytes) -> None:
        """Write ``after`` to the file ``name``, which held ``before``; see :func:`replace`."""
        descriptor, status = open_regular(self._name(name), follow=False, dir_fd=self._descriptor)
        with os.fdopen(descriptor, "rb", buffering=0) as old:
            # The bits are asked too: the superuser may write a file that is marked read-only.
            if not status.st_mode & 0o222 or not os.access(
                self._name(name), os.W_OK, dir_fd=self._descriptor
            ):
                raise Refused("cannot be written: it is read-only")
            if status.st_nlink > 1:
                raise Refused(
                    f"was not written: it has {status.st_nlink} names (hard links), and only this one would "
                    "change; copy it to a file of its own, or apply the patch of --dry-run yourself"
                )

            def finish(new: int) -> None:
                _keep(new, descriptor, status)
                # Last of all, so that the time in which it can still change is as short as can be.
                self._is_still(name, descriptor, status, before)
                if self._descriptor is None:
                    old.close()  # Windows replaces no file that is open.

            self._put(name, after, 0o600, finish)

    def _is_still(self, name: str, descriptor: int, status: os.stat_result, content: bytes) -> None:
        """Refuse if ``name`` is no longer the file behind ``descriptor``, or holds something else."""
        now = None
        os.lseek(descriptor, 0, os.SEEK_SET)
        with suppress(TooLarge):
            now = _content(descriptor, len(content), len(content), name)
        there = self.status(name)
        if now != content or there is None or not os.path.samestat(there, status):
            raise Refused("was not written: it has changed since it was read; run gradfix again")

    def sweep(self) -> None:
        """Remove the new files that killed processes have left in it.

        Such a file has its own number (inode) in its name, so no copy of one that came with the code passes
        for it, and belongs to this user. One that is being written is locked.
        """
        if fcntl is None or self._descriptor is None or self._swept:
            return
        self._swept = True
        for name in self.names():
            found = _LEFT.fullmatch(name)
            status = self.status(name) if found else None
            if found and status is not None and _is_left(status, int(found[1], 16)):
                with suppress(OSError):  # It stays.
                    descriptor = os.open(name, _READ | _NO_LINK, dir_fd=self._descriptor)
                    try:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        if os.path.samestat(os.fstat(descriptor), status):
                            self.remove(name)
                    finally:
                        os.close(descriptor)

    def _put(self, name: str, data: bytes, mode: int, finish: Callable[[int], None]) -> None:
        """Put a new file with ``data`` in the place of ``name``, once ``finish`` has been given it.

        Where the system can, it has no name until it is whole, so that a process that is killed leaves
        nothing; ``finish`` is called again where the file system turns out not to.
        """
        self.sweep()
        if not self._put_unnamed(name, data, mode, finish):
            self._put_named(name, data, mode, finish)
        if self._descriptor is not None:
            with suppress(OSError):  # Some file systems know no such thing.
                os.fsync(self._descriptor)

    def _put_unnamed(self, name: str, data: bytes, mode: int, finish: Callable[[int], None]) -> bool:
        """Do it with a file that gets a name last of all; whether that can be done here."""
        if self._descriptor is None or not hasattr(os, "O_TMPFILE"):
            return False
        try:
            new = os.open(os.curdir, os.O_TMPFILE | os.O_WRONLY | _OPENED, mode, dir_fd=self._descriptor)
        except OSError:  # The named one says what is wrong, if anything is.
            return False
        with os.fdopen(new, "wb", buffering=0):
            _fill(new, data, finish)
            fresh = _fresh_name(new)
            try:
                os.link(f"/proc/self/fd/{new}", fresh, dst_dir_fd=self._descriptor)
            except OSError:
                return False
            self._move(fresh, name)
        return True

    def _put_named(self, name: str, data: bytes, mode: int, finish: Callable[[int], None]) -> None:
        """Do it with a file that has a name from the beginning."""
        fresh = _numbered(0)
        try:
            new = os.open(self._name(fresh), _NEW, mode, dir_fd=self._descriptor)
            with os.fdopen(new, "wb", buffering=0):
                if self._descriptor is not None:
                    unnumbered, fresh = fresh, _fresh_name(new)
                    self._move(unnumbered, fresh)
                _fill(new, data, finish)
                if self._descriptor is not None:
                    self._move(fresh, name)  # While it is locked.
            if self._descriptor is None:
                self._move(fresh, name)  # Windows moves no file that is open.
        except BaseException:
            with suppress(OSError):
                self.remove(fresh)
            raise

    def _move(self, name: str, to: str) -> None:
        """Give the file ``name`` the name ``to``, in the place of what has it; else remove it."""
        try:
            os.replace(
                self._name(name), self._name(to), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor
            )
        except BaseException:
            with suppress(OSError):
                self.remove(name)
            raise

    def _name(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self.path, name)


def _fresh_name(new: int) -> str:
    """The name for a file that is being written, which tells by its number that it is this very file."""
    if fcntl is not None:
        with suppress(OSError):  # Where there are no locks, nothing is swept either.
            fcntl.flock(new, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return _numbered(os.fstat(new).st_ino)


def _numbered(number: int) -> str:
    return f".gradfix-{number:x}-{os.urandom(8).hex()}.tmp"


def _is_left(status: os.stat_result, number: int) -> bool:
    """Whether a file is the one that had this number when it was named, and this user's to remove.

    It has none, and is empty, until it is known which number it has.
    """
    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    same = status.st_ino == number if number else not status.st_size
    return plain and same and os.geteuid() in (0, status.st_uid)


def _fill(new: int, data: bytes, finish: Callable[[int], None]) -> None:
    _write_all(new, data)
    os.fsync(new)
    finish(new)


def _through_a_link(path: str) -> str:
    return f"cannot be written: {path} is a symbolic link, and gradfix writes through none; remove it first"


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


# ---------------------------------------------------------------------------- what a new file takes over

_NOT_OURS = frozenset({"security.ima", "security.evm"})
"""Attributes that the kernel makes of the content itself."""


def _keep(new: int, old: int, status: os.stat_result) -> None:
    """Give the file ``new`` the owner, the extended attributes and the mode of the file ``old``.

    Only the superuser gives files away; otherwise the writer becomes the owner, as in an editor, and no group
    gains a right that the former one had.
    """
    mode = stat.S_IMODE(status.st_mode)
    if hasattr(os, "fchown"):
        for owner in (status.st_uid, -1):
            with suppress(OSError):
                os.fchown(new, owner, status.st_gid)
                break
        now = os.fstat(new)
        if now.st_gid != status.st_gid:
            mode &= ~0o070 | (mode & 0o007) << 3
        if (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
            mode &= 0o777
    _keep_attributes(new, old)
    # Where a file system has no modes of its own, not even the one that is there can be set.
    if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(new).st_mode) != mode:
        os.fchmod(new, mode)


def _keep_attributes(new: int, old: int) -> None:
    """Copy the extended attributes: those of the user, access lists, the labels of a security module.

    Raises:
        Refused: One of them cannot be kept.
    """
    if not hasattr(os, "listxattr"):
        return
    wanted, given = _attributes(old), _attributes(new)
    # The folder may give an access list to what is new in it.
    extra = [name for name in given if name not in wanted and not name.startswith("security.")]
    changed = [name for name, value in wanted.items() if given.get(name) != value]
    for name in (*extra, *changed):
        try:
            if name in wanted:
                os.setxattr(new, name, wanted[name])
            else:
                os.removexattr(new, name)
        except OSError as error:
            why = error.strerror or error
            raise Refused(f"was not written: its attribute {name} cannot be kept: {why}") from None


def _attributes(descriptor: int) -> dict[str, bytes]:
    try:
        names = os.listxattr(descriptor)
    except OSError:  # This file system has none.
        return {}
    found: dict[str, bytes] = {}
    for name in names:
        if name not in _NOT_OURS:
            with suppress(OSError):
                found[name] = os.getxattr(descriptor, name)
    return found
