"""Which interpreters are started: none that may have come with somebody else's code.

``docs/trust.md`` says what is trusted and why. An environment or an interpreter that is found beside the
code, or that the code's configuration names, is started if

* the user has allowed it (``gradfix trust PATH``, kept with what it was then), or
* the user's shell or gradfix itself runs in it already, or
* it is certainly the user's own: git has checked out what lies beside it, on this machine, and does not have
  it; and nobody but the user and the superuser can change it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gradfix import checkout, files
from gradfix.checkout import Checkout, CheckoutError
from gradfix.verify import hostile

ALLOWED = "allowed with `gradfix trust`"
ACTIVE = "the active environment"
OWN = "gradfix's own environment"
YOURS = "yours: git has what lies beside it, and does not have it"

_INTERPRETERS = ("bin/python", "Scripts/python.exe")
_NAME = re.compile(r"(python|pypy)\d*(\.\d+)*[a-z]?(\.exe)?", re.IGNORECASE)
_SETTINGS = "pyvenv.cfg"
_READ = 1 << 20
"""Bytes of a file that are looked at, to see whether it is as it was."""


class TrustError(Exception):
    """What is to be trusted cannot be, or what is trusted cannot be told; the message says why."""


class Verdict(NamedTuple):
    """Whether an interpreter is started."""

    allowed: bool
    why: str


def interpreter_in(environment: str | os.PathLike[str]) -> str | None:
    """The interpreter of a virtual environment; ``None`` if the folder is none."""
    for name in _INTERPRETERS:
        executable = os.path.join(environment, name)
        if os.path.isfile(executable) and os.path.isfile(os.path.join(environment, _SETTINGS)):
            return executable
    return None


def subject_of(executable: str) -> str:
    """What is trusted with an interpreter: its virtual environment, or the file alone if it has none."""
    environment = os.path.dirname(os.path.dirname(os.path.abspath(executable)))
    return environment if interpreter_in(environment) else os.path.abspath(executable)


def is_named_like_one(executable: str) -> bool:
    """Whether a program is called what interpreters are called: a configuration may name no other."""
    return _NAME.fullmatch(os.path.basename(executable)) is not None


def verdict(executable: str) -> Verdict:
    """Whether the interpreter at the path ``executable`` is started; nothing of it is for this."""
    subject = subject_of(executable)
    active = os.environ.get("VIRTUAL_ENV")
    if active and os.path.isabs(active) and os.path.realpath(subject) == os.path.realpath(active):
        return Verdict(True, ACTIVE)
    if os.path.realpath(subject) in (os.path.realpath(sys.prefix), os.path.realpath(sys.executable)):
        return Verdict(True, OWN)
    try:
        allowed = _remembered().get(_located(subject))
        if allowed is not None:
            if allowed == identity(subject):
                return Verdict(True, ALLOWED)
            return Verdict(False, "is not what it was when you allowed it")
    except TrustError as error:
        return Verdict(False, f"cannot be told from what you have not allowed: {error}")
    try:
        _hold_for_own(subject, executable)
    except _NotOwn as reason:
        return Verdict(False, str(reason))
    return Verdict(True, YOURS)


def shown(executable: str) -> str:
    """What ``gradfix trust`` is given for an interpreter, as it is typed in the current folder."""
    return printable(os.path.relpath(subject_of(executable)))


def printable(text: str) -> str:
    """``text`` for people: names of files are whatever somebody has made of them."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


# ---------------------------------------------------------------------------- certainly the user's own


class _NotOwn(Exception):
    """Why it is not certain that something is the user's own."""


def _hold_for_own(subject: str, executable: str) -> None:
    """Return if an interpreter is certainly the user's own, with the environment that it is in.

    Raises:
        _NotOwn: if it is not.
    """
    located, interpreter = _located(subject), os.path.realpath(executable)
    _not_in_git(located, vouched=True)
    real = os.path.realpath(located)
    # What the user's own link leads to need not be vouched for.
    for path in {real, interpreter} - {located}:
        _not_in_git(path, vouched=False)
    _not_others({located, real, interpreter, *(_parts(real) if os.path.isdir(real) else ())})


def _located(subject: str) -> str:
    """The path with all links resolved but the last, which may be the user's."""
    folder, name = os.path.split(os.path.abspath(subject))
    return os.path.join(os.path.realpath(folder), name)


def _not_in_git(path: str, *, vouched: bool) -> None:
    """Return if no repository around ``path`` has it or anything below it, and, if it has to be ``vouched``
    for, one of them was checked out here.

    That is known by the index: it tells the number and the last change of the inode of each file, as git has
    seen it on this disk, which who packs an archive cannot foresee. Were it made to fit afterwards, then by a
    git that has read the same repository's configuration, and has run what that names.

    Raises:
        _NotOwn: otherwise.
    """
    folder = os.path.dirname(path)
    known = False
    try:
        for one in checkout.around(folder):
            inside = os.path.relpath(path, one.root)
            beside = inside[: -len(os.path.basename(inside))]
            staged = one.staged(_pathspec(inside), f":(glob){checkout.quoted(beside)}*")
            for entry in staged:
                if (entry.path + "/").casefold().startswith(inside.replace(os.sep, "/").casefold() + "/"):
                    raise _NotOwn(f"came with the code: git has {entry.path}")
            known = known or any(_is_as_checked_out(one, entry) for entry in staged)
    except CheckoutError as error:
        raise _NotOwn(f"may have come with the code: {error}") from None
    if vouched and not known:
        raise _NotOwn("may have come with the code: no git repository says that it is yours")


def _pathspec(inside: str) -> str:
    """What matches a path from the root of a repository, and all that is below it."""
    # Where a file system does not tell case apart, another spelling is the same file.
    return f":(icase,literal){inside}"


def _is_as_checked_out(one: Checkout, entry: checkout.Staged) -> bool:
    try:
        now = os.lstat(os.path.join(one.root, entry.path))
    except (OSError, ValueError):
        return False
    seconds, nanoseconds = divmod(now.st_ctime_ns, 1_000_000_000)
    # A git that was built without nanoseconds notes none.
    same = entry.changed in ((seconds, nanoseconds), (seconds, 0))
    return same and entry.inode == now.st_ino & 0xFFFFFFFF and stat.S_ISREG(now.st_mode)


def _parts(environment: str) -> Iterator[str]:
    """What Python reads of an environment when it starts, and what lies beside that."""
    yield os.path.join(environment, _SETTINGS)
    for place in ("bin", "Scripts", *_site_packages(environment)):
        folder = os.path.join(environment, place)
        with suppress(OSError), os.scandir(folder) as entries:
            yield folder
            yield from (entry.path for entry in entries)


def _site_packages(environment: str) -> Iterator[str]:
    yield os.path.join("Lib", "site-packages")
    for lib in ("lib", "lib64"):
        with suppress(OSError):
            for name in os.listdir(os.path.join(environment, lib)):
                yield os.path.join(lib, name, "site-packages")


def _not_others(paths: Collection[str]) -> None:
    """Return if nobody but the user and the superuser can change what is at ``paths``, or replace it.

    Raises:
        _NotOwn: otherwise.
    """
    if not hasattr(os, "geteuid"):
        return
    for path in sorted({*paths, *(str(folder) for one in paths for folder in Path(one).parents)}):
        try:
            status = os.lstat(path)
        except OSError as error:
            raise _NotOwn(f"cannot be looked at: {path}: {error.strerror}") from None
        if status.st_uid not in (0, os.geteuid()):
            raise _NotOwn(f"is not yours alone: {path} belongs to {_user(status.st_uid)}")
        if stat.S_ISLNK(status.st_mode):
            continue  # It has no mode: who may write to its folder may replace it.
        others = status.st_mode & stat.S_IWOTH
        group = status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid)
        # From a folder like /tmp nobody takes what is another's, but anybody may put something there.
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX and path not in paths
        if (others or group) and not sticky:
            raise _NotOwn(f"is not yours alone: others may write to {path}")


_PRIVILEGED = frozenset(
    {"root", "wheel", "sudo", "admin"} | (set() if sys.platform == "darwin" else {"staff"})
)
"""Groups whose members may do what the superuser may (Debian's ``staff``: write to ``/usr/local``)."""


def _is_private(group: int) -> bool:
    """Whether a group has no members but the user, or none that are not the superuser's equals."""
    import grp
    import pwd

    try:
        found, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    if found.gr_name in _PRIVILEGED:
        return True
    # Many systems give each user a group of that name.
    return group == user.pw_gid and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


# ---------------------------------------------------------------------------- allowed by the user


@dataclass(frozen=True, slots=True)
class Identity:
    """What an environment or an interpreter was when it was allowed. If any of it changes, it is another."""

    real: str
    """Where it is, without links."""
    inode: int
    owner: int
    interpreter: str
    """The program that runs in the end, without links."""
    settings: str
    """A digest of ``pyvenv.cfg``, or of the interpreter where there is none."""
    committed: str
    """A digest of what git has of it, where it came with the code: what is pulled is new."""


def identity(subject: str) -> Identity:
    """What the environment or interpreter at the path ``subject`` is now.

    Raises:
        TrustError: if it cannot be read.
    """
    located = _located(subject)
    real = os.path.realpath(located)
    inside = interpreter_in(real)
    try:
        status = os.stat(real)
        settings = os.path.join(real, _SETTINGS) if inside else real
        content = hostile.read(Path(os.path.realpath(settings)), _READ)
        if inside is None:
            content += f"{status.st_size} {status.st_mtime_ns}".encode()
        committed = _committed(located) + (_committed(real) if real != located else b"")
    except OSError as error:
        raise TrustError(f"cannot be read: {error.strerror}") from None
    except CheckoutError as error:
        raise TrustError(str(error)) from None
    return Identity(
        real=real,
        inode=status.st_ino,
        owner=status.st_uid,
        interpreter=os.path.realpath(inside or real),
        settings=hashlib.sha256(content).hexdigest(),
        committed=hashlib.sha256(committed).hexdigest() if committed else "",
    )


def _committed(path: str) -> bytes:
    """What the indexes around ``path`` hold of it."""
    return b"".join(
        one.ask("ls-files", "-s", "-z", "--", _pathspec(os.path.relpath(path, one.root)))
        for one in checkout.around(os.path.dirname(path))
    )


def allow(path: str) -> str:
    """Trust the environment or interpreter at ``path`` from now on; gives what is trusted.

    Raises:
        TrustError: if it is neither, or cannot be noted down.
    """
    if not interpreter_in(path) and not (os.path.isfile(path) and os.access(path, os.X_OK)):
        raise TrustError("is neither a virtual environment nor an interpreter")
    subject = path if interpreter_in(path) else subject_of(path)
    known = _remembered()
    known[_located(subject)] = identity(subject)
    _remember(known)
    return _located(subject)


def forget(path: str) -> None:
    """Trust what is at ``path`` no more.

    Raises:
        TrustError: if it was not trusted, or that cannot be noted down.
    """
    known = _remembered()
    for located in (_located(path), _located(subject_of(path))):
        if known.pop(located, None) is not None:
            _remember(known)
            return
    raise TrustError("is not among what you have allowed")


def allowed() -> list[tuple[str, bool]]:
    """What the user has allowed, and whether it is still what it was then.

    Raises:
        TrustError: if the list cannot be read.
    """

    def is_same(path: str, then: Identity) -> bool:
        with suppress(TrustError):
            return identity(path) == then
        return False

    return [(path, is_same(path, then)) for path, then in sorted(_remembered().items())]


def _list() -> Path:
    """The file in the user's configuration that names what is trusted."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    # As the specification has it, a relative path is no answer.
    return (Path(folder) if os.path.isabs(folder) else Path.home() / ".config") / "gradfix" / "trusted.json"


def _remembered() -> dict[str, Identity]:
    """What is trusted, by its path.

    Raises:
        TrustError: if others can write to the list, or it makes no sense.
    """
    file = _list()
    if not os.path.lexists(file):
        return {}
    try:
        _not_others({os.path.realpath(file)})
        content: Any = json.loads(files.read(file, 1 << 24))
        return {one.pop("path"): Identity(**one) for one in content["trusted"]}
    except _NotOwn as reason:
        raise TrustError(f"{file} {reason}") from None
    except OSError as error:
        raise TrustError(f"{file} {files.told(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TrustError(f"{file} is no list of what is trusted; remove it to begin anew") from None


def _remember(known: dict[str, Identity]) -> None:
    file = _list()
    trusted = [{"path": path, **asdict(one)} for path, one in sorted(known.items())]
    data = json.dumps({"version": 1, "trusted": trusted}, indent=2).encode()
    try:
        files.must_be_ours(file.parent)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with files.Folder(str(file.parent)) as folder:
            folder.save(file.name, data, 0o600)
    except OSError as error:
        raise TrustError(f"{file} {files.told(error, 'cannot be written')}") from None
