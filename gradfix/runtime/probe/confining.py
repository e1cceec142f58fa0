"""Before any of the user's code: a run's files are opened, its limits are set, and it is confined."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
from collections.abc import Collection
from time import perf_counter
from typing import Any

from .. import FOLDER, sandbox
from ..sandbox import confinement, readable

DESCRIPTORS = 1024
ROWS, COLUMNS = 24, 80
"""Of the terminal that a run has as its standard input."""


def limit(limits: dict[str, Any]) -> None:
    """Bound memory, processor time, open files and the size of files, where the system can."""
    bound(limits)
    with contextlib.suppress(ImportError, OSError), open("/proc/self/statm") as status:
        import resource

        # Torch's libraries alone map gigabytes that are never touched, so the bound is on growth.
        lower("RLIMIT_AS", int(status.read().split()[0]) * resource.getpagesize() + limits["memory"])


def bound(limits: dict[str, Any], more: int = 0) -> None:
    """Bound all that but memory; a run may take so many seconds ``more``."""
    lower("RLIMIT_CORE", 0)
    lower("RLIMIT_FSIZE", limits["file"])
    lower("RLIMIT_NOFILE", DESCRIPTORS)
    # For whatever should outlive the server, which ends runs by the clock.
    lower("RLIMIT_CPU", (int(limits["seconds"]) + more) * (os.cpu_count() or 1) + 10)


def lower(name: str, bound: int) -> None:
    """Lower a limit of this process, where the system has it."""
    with contextlib.suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        kind = getattr(resource, name)
        highest = resource.getrlimit(kind)[1]
        bound = bound if highest == resource.RLIM_INFINITY else min(bound, highest)
        resource.setrlimit(kind, (bound, bound))


@functools.cache
def installed() -> Any:
    """What this interpreter reads of itself and its packages; the same for all runs."""
    return readable.interpreter_files()


class ReadableFolders:
    """Looks through projects and folders of data for what runs may read of them."""

    SLOW = 0.1
    """Seconds from which on it is not done again for the next run."""

    def __init__(self) -> None:
        self.known: dict[Any, tuple[Any, float]] = {}
        """What was found, and how long that took."""

    def refresh(self, job: dict[str, Any]) -> None:
        """Look again, where that is quick: there may be new files."""
        if self.known.get(self.key(job), (None, 0.0))[1] < self.SLOW:
            self.known.pop(self.key(job), None)
        self.found(job)

    def found(self, job: dict[str, Any]) -> Any:
        """What this job may read, beside its interpreter."""
        key = self.key(job)
        if key not in self.known:
            began = perf_counter()
            project, data = readable.project_files(*key[:2]), readable.data_folders(list(key[2]))
            files = readable.Readable(project.whole + data.whole, project.listed + data.listed)
            self.known[key] = files, perf_counter() - began
        return self.known[key][0]

    def key(self, job: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
        return job["root"], job["path"], tuple(job["command"]["readable"])


given = ReadableFolders()

STANDINS = [os.path.join(FOLDER, "standins"), os.path.join(FOLDER, "alone")]


def scratch_of(job: dict[str, Any]) -> str:
    """The folder that a run may write to."""
    return os.path.join(job["folder"], "scratch")


def confine(
    job: dict[str, Any], channel: socket.socket | None, held: Collection[str] = (), own: Any = None
) -> None:
    """Enter the sandbox that the job names; ``channel`` leads to the supervisor.

    Args:
        held: What the kernel holds of it (see ``sandbox.Level``).
        own: What the interpreter may read of itself, if it is not this one.

    Raises:
        SandboxError: if it is not to be had.
    """
    own, files = own or installed(), given.found(job)
    limits, scratch = job["limits"], scratch_of(job)
    # Within another program's sandbox `/dev/shm` is private already.
    private = job["shared"] and job["level"] == sandbox.LANDLOCK
    box = confinement.Confinement(
        job["level"],
        # Stand-ins are loaded when a script asks for what they stand for.
        readable.Readable([*STANDINS, *own.whole, *files.whole], [FOLDER, *own.listed, *files.listed]),
        scratch,
        confinement.Private(limits["memory"], limits["disk"], limits["files"]) if private else None,
        limits["tasks"] if sandbox.TASKS in held else 0,
        sandbox.CGROUP in held,
        job["newest"],
    )
    listener = confinement.confine(box, supervised=channel is not None)
    if channel is not None:
        confinement.hand_over(channel, listener, [scratch, readable.SHARED_MEMORY] if private else [])


def opened(job: dict[str, Any]) -> tuple[int, int]:
    """Open what a run writes its record to; its standard streams lead elsewhere from here on."""
    folder, scratch = job["folder"], scratch_of(job)
    os.makedirs(scratch, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    for name, descriptor in (("stdout.txt", 1), ("stderr.txt", 2)):
        os.dup2(os.open(os.path.join(folder, name), flags, 0o600), descriptor)
    os.dup2(terminal(), 0)
    os.chdir(scratch)
    events, values = (
        os.open(os.path.join(folder, name), flags, 0o600) for name in ("events.jsonl", "values.bin")
    )
    return events, values


def trouble(events: int, message: str) -> None:
    """End the process, and record why the run could not be started."""
    for line in ({"event": "trouble", "message": message}, {"event": "end", "how": "trouble"}):
        os.write(events, json.dumps(line).encode() + b"\n")
    os._exit(0)


def terminal() -> int:
    """A terminal of usual size at which nobody types: what is read from it has ended.

    Users start scripts in one, and some ask how wide it is. Where none is to be had it is the null device.
    """
    try:
        import fcntl
        import pty
        import struct
        import termios

        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.write(ours, b"\x04" * 64)
    except (ImportError, OSError):
        return os.open(os.devnull, os.O_RDONLY)
    return theirs
