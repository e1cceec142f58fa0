"""Whether a sandbox refuses what it must refuse: it is tried, in a process made for that."""

from __future__ import annotations

import errno
import os
import socket
import tempfile
from typing import Any

from . import CGROUP, LANDLOCK, PROCESSES, TASKS, cgroups, namespaces
from .confinement import Confinement, Private, confine
from .kernel import SandboxError
from .landlock import landlock_abi
from .readable import interpreter_files


def tried(folder: str, canary: str) -> str | None:
    """From inside a sandbox: what it failed to refuse, or refused though it should not have."""
    try:
        with open(os.path.join(folder, "inside"), "w") as file:
            file.write("1")
    except OSError as error:
        return "it cannot write to its own folder (" + str(error) + ")"
    for flags, what in ((os.O_RDONLY, "be read"), (os.O_WRONLY, "be written")):
        try:
            os.close(os.open(canary, flags))
            return "a file outside can still " + what
        except OSError:
            pass
    for family in (socket.AF_INET, socket.AF_UNIX):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as made:
                made.settimeout(1)
                made.connect(("192.0.2.1", 9) if family == socket.AF_INET else canary)
            return "the network can still be reached"
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES, errno.ENETUNREACH, errno.ENOENT):
                return "the network is not refused (" + str(error) + ")"
    return None


def try_confining(private: Private | None = None) -> str | None:
    """Confine a process made for it with Landlock, and return why that does not hold, if so."""
    with tempfile.TemporaryDirectory(prefix="gradfix-") as temporary:
        folder = os.path.realpath(temporary)
        inside, canary = os.path.join(folder, "in"), os.path.join(folder, "canary")
        os.mkdir(inside)
        with open(canary, "w") as file:
            file.write("1")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                files = interpreter_files()
                confine(Confinement(LANDLOCK, files, inside, private))
                said = tried(inside, canary)
            except BaseException as error:
                said = str(error)
            os.write(writing, (said or "").encode()[:1000])
            os._exit(0 if said is None else 1)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        return None if status == 0 else said or f"a confined process was ended by signal {status & 0x7F}"


def describe() -> dict[str, Any]:
    """What this interpreter can have here: ``landlock`` (its ABI), ``memory`` (whether file systems of its
    own are to be had), ``held`` (what else the kernel holds), ``cgroup`` (their version, 0 for none), ``why``
    (why there is no Landlock), and the files that it needs."""
    found: dict[str, Any] = {"landlock": 0, "memory": False, "why": "", "files": interpreter_files()}
    found.update(held=[], cgroup=0)
    try:
        found["landlock"] = landlock_abi()
        why = try_confining()
        if why is not None:
            found["landlock"], found["why"] = 0, why
            return found
        found["memory"] = try_confining(Private(1 << 20, 1 << 20, 64)) is None
        if namespaces.processes_held():
            found["held"].append(PROCESSES)
        if found["memory"] and namespaces.tasks_held():
            found["held"].append(TASKS)
        found["cgroup"] = cgroups.available()
        if found["cgroup"]:
            found["held"].append(CGROUP)
    except SandboxError as error:
        found["why"] = str(error)
    return found
