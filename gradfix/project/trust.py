"""Trust: which interpreters may be started and which folders outside a project may be read, as the user
has decided.

``docs/trust.md`` gives the rule and the reasons. An interpreter is started if

* the user has activated its environment (``VIRTUAL_ENV``, ``CONDA_PREFIX``) or named it on the command line,
* gradfix itself runs in it, or
* the user has allowed it (``gradfix trust PATH``, or by an answer at the terminal).

Where it lies, and what git knows of it, says nothing: both may have come with the code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gradfix.project import checkout
from gradfix.project.checkout import CheckoutError
from gradfix.system import files, hostile
from gradfix.system.printable import printable

ALLOWED = "allowed with `gradfix trust`"
ACTIVE = "the active environment"
OWN = "gradfix's own environment"

_INTERPRETERS = ("bin/python", "Scripts/python.exe", "python.exe")
_NAME = re.compile(r"(python|pypy)\d*(\.\d+)*[a-z]?(\.exe)?", re.IGNORECASE)
_SETTINGS = "pyvenv.cfg"
_READ = 1 << 20
"""Bytes of a file that are looked at, to see whether it is as it was."""


_NO_DATA = "is no folder that runs read: it is not there, holds more than data, or is hidden"


class TrustError(Exception):
    """What is to be trusted cannot be, or what is trusted cannot be told; the message says why."""


class Verdict(NamedTuple):
    """Whether an interpreter is started, or a folder may be read."""

    allowed: bool
    why: str
    """Who says so; or what is in the way, as what follows "which"."""
    askable: bool = True
    """Whether the user's word is all that is wanting."""


def interpreter_in(environment: str | os.PathLike[str]) -> str | None:
    """The interpreter of a virtual environment, or of one of conda's; ``None`` if the folder is neither."""
    if any(os.path.exists(os.path.join(environment, mark)) for mark in (_SETTINGS, "conda-meta")):
        for name in _INTERPRETERS:
            if os.path.isfile(executable := os.path.join(environment, name)):
                return executable
    return None


def subject_of(executable: str) -> str:
    """What is trusted with an interpreter: its environment, or the file alone if it has none."""
    folder = os.path.dirname(os.path.abspath(executable))
    environment = os.path.dirname(folder) if os.path.basename(folder) in ("bin", "Scripts") else folder
    return environment if interpreter_in(environment) else os.path.abspath(executable)


def is_named_like_one(executable: str) -> bool:
    """Whether a program is called what interpreters are called: a configuration may name no other."""
    return _NAME.fullmatch(os.path.basename(executable)) is not None


def active() -> Iterator[str]:
    """The environments that the user has activated."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = os.environ.get(name, "")
        if os.path.isabs(folder):
            yield folder


def verdict(executable: str, *, ask: bool = False) -> Verdict:
    """Whether the interpreter at the path ``executable`` is started; nothing of it is for this.

    With ``ask`` the user is asked, within :func:`asking`, if nothing but that is wanting.
    """
    subject = subject_of(executable)
    if any(os.path.realpath(subject) == os.path.realpath(one) for one in active()):
        return Verdict(True, ACTIVE)
    # By its own path: a link to the same program is an interpreter of the environment that the link lies in.
    if os.path.realpath(subject) == os.path.realpath(sys.prefix) or _located(subject) == _located(
        sys.executable
    ):
        return Verdict(True, OWN)
    question = f"Start {os.path.abspath(executable)}? It may have come with the code, and runs what is in it."
    return _said_of(subject, question if ask else None)


def may_read(folder: str, project: Path, *, ask: bool = False) -> Verdict:
    """Whether the runs of a project may read a folder that its configuration names; ``ask`` as above."""
    from gradfix.runtime.sandbox.readable import is_data

    real = os.path.realpath(folder)
    if not is_data(folder):
        return Verdict(False, _NO_DATA, askable=False)
    if Path(real).is_relative_to(os.path.realpath(project)):
        return Verdict(True, "in the project")
    return _said_of(folder, f"May the scripts of {project} read {real}?" if ask else None)


def shown(executable: str) -> str:
    """What ``gradfix trust`` is given for an interpreter, as it is typed in the current folder."""
    return printable(os.path.relpath(subject_of(executable)))


# ---------------------------------------------------------------------------- the user's word

_question: ContextVar[Callable[[str], bool] | None] = ContextVar("_question", default=None)
"""Asks the user, where one is there."""


@contextmanager
def asking(question: Callable[[str], bool]) -> Iterator[None]:
    """Within it, ask the user about what is not allowed yet; a yes is remembered."""
    token = _question.set(question)
    try:
        yield
    finally:
        _question.reset(token)


def _said_of(subject: str, question: str | None) -> Verdict:
    """What the user has said of an environment, an interpreter or a folder; or says now, if there is a
    question and somebody to answer it."""
    try:
        then = _remembered().get(_located(subject))
        _not_others(_parts(subject))
        if then is not None and then == identity(subject):
            return Verdict(True, ALLOWED)
        ask = _question.get()
        if question is not None and ask is not None and ask(question):
            allow(subject)
            return Verdict(True, ALLOWED)
    except TrustError as error:
        return Verdict(False, str(error), askable=False)
    return Verdict(
        False, "you have not allowed" if then is None else "is not what it was when you allowed it"
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """What something was when it was allowed. If any of it changes, it is another."""

    real: str
    """Where it is, without links."""
    inode: int
    owner: int
    content: str
    """Of an environment or an interpreter: a digest of its settings, of the program that runs in the end, and
    of what git has of it, so that what is pulled is new. Packages that the user installs are no change."""


def identity(subject: str) -> Identity:
    """What the environment, interpreter or folder at the path ``subject`` is now.

    Raises:
        TrustError: if it cannot be read.
    """
    real = os.path.realpath(subject)
    try:
        status = os.stat(real)
        messages = []
        if not stat.S_ISDIR(status.st_mode) or interpreter_in(real):
            program = os.path.realpath(interpreter_in(real) or real)
            # One of its own; the system's is upgraded now and then.
            seen = os.stat(program) if Path(program).is_relative_to(real) else None
            messages = [
                program.encode("utf-8", "surrogateescape"),
                b"%d %d" % (seen.st_size, seen.st_mtime_ns) if seen else b"",
                *(hostile.read(Path(folder, _SETTINGS), _READ) for folder in _around(real)),
                *(_committed(path) for path in {_located(subject): None, real: None}),
            ]
    except OSError as error:
        raise TrustError(f"cannot be read: {error.strerror}") from None
    digest = hashlib.sha256(b"\0".join(messages)).hexdigest() if messages else ""
    return Identity(real, status.st_ino, status.st_uid, digest)


def _around(real: str) -> list[str]:
    """Where the settings of an environment, or of an interpreter alone, are looked for by Python."""
    return [real] if os.path.isdir(real) else list(map(str, Path(real).parents[:2]))


def _committed(path: str) -> bytes:
    """What the indexes in and around ``path`` hold of it, or why that cannot be told."""
    try:
        return b"".join(
            # Where a file system does not tell case apart, another spelling is the same file.
            one.ask("ls-files", "-s", "-z", "--", f":(icase,literal){os.path.relpath(path, one.root)}")
            for one in checkout.around(path)
        )
    except CheckoutError as error:
        return str(error).encode("utf-8", "surrogateescape")


def _located(subject: str) -> str:
    """The path with all links resolved but the last, which may be the user's."""
    folder, name = os.path.split(os.path.abspath(subject))
    return os.path.join(os.path.realpath(folder), name)


def allow(path: str) -> str:
    """Trust the environment, the interpreter, or the folder of data at ``path``; gives what is trusted.

    Raises:
        TrustError: if it is none of these, if others may change it, or it cannot be noted down.
    """
    from gradfix.runtime.sandbox.readable import is_data

    if os.path.isdir(path) and not interpreter_in(path):
        if not is_data(path):
            raise TrustError(_NO_DATA)
        subject = path
    elif interpreter_in(path):
        subject = path
    elif os.path.isfile(path) and os.access(path, os.X_OK):
        subject = subject_of(path)
    else:
        raise TrustError("is neither an environment nor an interpreter nor a folder of data")
    _not_others(_parts(subject))
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


_VERSION = 2
"""Of the list; of an older one nothing counts, and the user is asked again."""


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
        if content["version"] != _VERSION:
            return {}
        return {one.pop("path"): Identity(**one) for one in content["trusted"]}
    except TrustError as error:
        raise TrustError(f"cannot be looked up: {file} {error}") from None
    except OSError as error:
        raise TrustError(f"cannot be looked up: {file} {files.describe_error(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TrustError(
            f"cannot be looked up: {file} is no list of what is trusted; remove it to start over"
        ) from None


def _remember(known: dict[str, Identity]) -> None:
    file = _list()
    trusted = [{"path": path, **asdict(one)} for path, one in sorted(known.items())]
    data = json.dumps({"version": _VERSION, "trusted": trusted}, indent=2).encode()
    try:
        files.must_be_ours(file.parent)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with files.Folder(str(file.parent)) as folder:
            folder.save(file.name, data, 0o600)
    except OSError as error:
        raise TrustError(f"{file} {files.describe_error(error, 'cannot be written')}") from None


# ---------------------------------------------------------------------------- who can change it


def _parts(subject: str) -> set[str]:
    """What Python reads of an environment or an interpreter when it starts; nothing of a folder of data."""
    real = os.path.realpath(subject)
    executable = interpreter_in(real) if os.path.isdir(real) else real
    if executable is None:
        return set()
    found = {_located(subject), real, os.path.realpath(executable)}
    for pattern in (_SETTINGS, "bin", "bin/*", "Scripts/*", "lib*/*/site-packages", "lib*/*/site-packages/*"):
        found.update(map(str, Path(real).glob(pattern)) if real != executable else ())
    return found


def _not_others(paths: Collection[str]) -> None:
    """Return if only the user and the superuser can change or replace what is at ``paths``.

    Raises:
        TrustError: otherwise.
    """
    if not hasattr(os, "geteuid"):
        return
    for path in sorted({*paths, *(str(folder) for one in paths for folder in Path(one).parents)}):
        try:
            status = os.lstat(path)
        except OSError as error:
            raise TrustError(f"cannot be looked at: {path}: {error.strerror}") from None
        if status.st_uid not in (0, os.geteuid()):
            raise TrustError(f"is not yours alone: {path} belongs to user {status.st_uid}")
        if stat.S_ISLNK(status.st_mode):
            continue  # It has no mode: who may write to its folder may replace it.
        group = status.st_mode & stat.S_IWGRP and not _is_mine_alone(status)
        # From a folder like /tmp nobody takes what is another's, but anybody may put something there.
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX and path not in paths
        if (status.st_mode & stat.S_IWOTH or group) and not sticky:
            raise TrustError(f"is not yours alone: others may write to {path}")


def _is_mine_alone(status: os.stat_result) -> bool:
    """Whether the group of a file holds nobody but the user, as where each user has a group of that name, or
    those whom the superuser lets write to what is the superuser's (Debian's ``staff``)."""
    import grp
    import pwd

    if status.st_uid == 0 != os.geteuid():
        return True
    try:
        group, user = grp.getgrgid(status.st_gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    if os.geteuid() == 0 and group.gr_name in ("root", "wheel", "staff"):
        return True
    return (group.gr_gid, group.gr_name) == (user.pw_gid, user.pw_name) and {*group.gr_mem} <= {user.pw_name}
