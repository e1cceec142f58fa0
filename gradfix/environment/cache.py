"""Where environments are kept: in the user's cache folder, by what they are made of.

A folder with a manifest is a whole environment. It is made under another name and renamed when it is done,
so one whose making was interrupted is never taken for whole. Somebody who makes one holds its lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gradfix.environment.errors import EnvironmentFailure
from gradfix.environment.requirements import LeftOut
from gradfix.environment.resolve import Relaxed
from gradfix.project import configuration
from gradfix.system import files, store
from gradfix.verify.untrusted_environments import MANIFEST

if sys.platform != "win32":
    import fcntl

SCHEMA = 2
"""The version of the manifest and of how environments are made; a change rebuilds all."""

BUILDING, REPLACED, LOCK = ".building", ".replaced", ".lock"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an environment was made of, and what of that is in it."""

    requirements: tuple[str, ...]
    installed: tuple[str, ...]
    """Distributions, as ``numpy==2.4.6``."""
    modules: tuple[str, ...]
    """The top-level names that it supplies."""
    relaxed: tuple[Relaxed, ...]
    missing: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    python: str
    """The version of Python."""
    bases: tuple[str, ...]
    """Where the interpreter is installed that it was made with."""
    size: int
    """In bytes."""
    created: float
    """Seconds since the epoch."""

    def dump(self) -> str:
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1)


@dataclass(frozen=True, slots=True)
class Removed:
    """What a cleaning removed."""

    environments: int
    size: int
    in_use: int
    """Those that are being made right now, and stay."""


def home() -> Path:
    """The folder of all environments.

    Raises:
        EnvironmentFailure: It cannot be made, or others could write to it: what lies in it is run.
    """
    folder = _place()
    around = configuration.repository_root(os.path.realpath(folder))
    if store.came_with_the_code(str(folder), around):
        raise EnvironmentFailure(f"{folder} is inside a repository, from which no environment is taken")
    try:
        files.must_be_ours(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise EnvironmentFailure(f"{folder} {files.describe_error(error, 'cannot be made')}") from error
    if hasattr(os, "getuid") and (
        not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022
    ):
        raise EnvironmentFailure(f"{folder} is not a folder that only you can write to")
    return folder


def digest(requirements: Iterable[str], python: str, version: str, settings: dict[str, str]) -> str:
    """The name of the environment for these requirements."""
    contents = json.dumps([SCHEMA, sorted(set(requirements)), python, version, sorted(settings.items())])
    return hashlib.sha256(contents.encode()).hexdigest()[:20]


def executable_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / "Scripts" / "python.exe" if sys.platform == "win32" else folder / "bin" / "python"


def load(folder: Path) -> Manifest | None:
    """What an environment is made of; ``None`` where there is no whole one."""
    try:
        table: dict[str, Any] = json.loads(files.read(folder / MANIFEST))
        if table.pop("schema") != SCHEMA or not os.access(executable_of(folder), os.X_OK):
            return None
        for name in ("requirements", "installed", "modules", "notes", "bases"):
            table[name] = tuple(table[name])
        table["relaxed"] = tuple(Relaxed(**one) for one in table["relaxed"])
        table["missing"] = tuple(LeftOut(**one) for one in table["missing"])
        return Manifest(**table)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def make(folder: Path, fill: Callable[[Path], Manifest]) -> Manifest:
    """Have ``fill`` make an environment in a folder, and put it in the place of ``folder`` when it is whole.

    The lock has to be held (see :func:`locked`). What ``fill`` raises is raised, and nothing is left of it.
    """
    building, replaced = (folder.with_name(folder.name + ending) for ending in (BUILDING, REPLACED))
    for leftover in (building, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    building.mkdir(mode=0o700)
    try:
        manifest = fill(building)
        (building / MANIFEST).write_text(manifest.dump(), encoding="utf-8")
        if folder.exists():
            os.replace(folder, replaced)
        os.replace(building, folder)
    finally:
        for leftover in (building, replaced):
            shutil.rmtree(leftover, ignore_errors=True)
    return manifest


@contextmanager
def locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of one environment; waits for whoever has it."""
    with open(_lock_of(folder), "a+b") as file:
        if not _try_lock(file.fileno()):
            say("waiting for another gradfix that makes the same environment")
            _wait_for_lock(file.fileno())
        yield


def clean() -> Removed:
    """Remove all environments but those that are being made."""
    if not _place().exists():
        return Removed(0, 0, 0)
    here = home()
    count, size, in_use = 0, 0, 0
    names = {path.name.split(".")[0] for path in here.iterdir()}
    for name in sorted(names):
        folder = here / name
        with open(_lock_of(folder), "a+b") as file:
            if not _try_lock(file.fileno()):
                in_use += 1
                continue
            manifest = load(folder)
            count += folder.is_dir()
            size += manifest.size if manifest else 0
            for ending in ("", BUILDING, REPLACED):
                shutil.rmtree(folder.with_name(name + ending), ignore_errors=True)
            with suppress(OSError):
                _lock_of(folder).unlink()
    return Removed(count, size, in_use)


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder; what is linked to is not counted."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                status = os.lstat(os.path.join(path, name))
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def now() -> float:
    return time.time()


def _place() -> Path:
    folder = store.place("environments")
    if folder is None:
        raise EnvironmentFailure("there is no home folder to keep environments in: set GRADFIX_CACHE_DIR")
    return Path(folder)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + LOCK)


def _try_lock(descriptor: int) -> bool:
    """Take the lock if nobody has it; where the system has no such locks, it is everybody's."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _wait_for_lock(descriptor: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_EX)
