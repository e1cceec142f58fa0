"""Control groups of Linux: the kernel counts memory, tasks and time of a run, and holds it to them.

A group is made for each run where this process may make some: in its own group of the first version (as
root), or of the second version if that group was delegated to it, as by ``systemd-run --user --scope -p
Delegate=yes`` (see :func:`scope`). Memory in a group is all that is charged to it: private and shared pages,
files in memory, buffers of pipes and sockets, page tables.

Sources: ``Documentation/admin-guide/cgroup-v1/{memory,pids,cpuacct}.rst`` and ``cgroup-v2.rst`` of Linux, the
manual pages cgroups(7) and systemd-run(1).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from typing import NamedTuple

PREFIX = "gradfix-"
COPIES = 128 << 20
"""Bytes of memory that a run may have besides: copies of what it inherits, once it changes that."""
WAIT = 2.0
"""Seconds until a group whose processes were killed is empty."""


class CgroupParent(NamedTuple):
    """Where groups are made."""

    version: int
    folders: dict[str, str]
    """By controller (``memory``, ``pids``, and ``cpuacct`` where it is to be had): a folder."""


def place() -> CgroupParent | None:
    """Where this process may make groups for memory and tasks, if anywhere.

    A group of the second version can be divided only while no process is in it itself: where this one is the
    only one, it goes into a group below.
    """
    own = _own()
    folders = {str(name): own[name] for name in ("memory", "pids", "cpuacct") if name in own}
    if "memory" in folders and "pids" in folders:
        return CgroupParent(1, folders)
    folder = own.get("", "")
    wanted = {"memory", "pids"}
    if not folder or not wanted <= set(_read(folder, "cgroup.controllers").split()):
        return None
    try:
        if not wanted <= set(_read(folder, "cgroup.subtree_control").split()):
            if _read(folder, "cgroup.procs").split() != [str(os.getpid())]:
                return None  # It is not ours to divide.
            inner = os.path.join(folder, PREFIX + "server")
            os.makedirs(inner, exist_ok=True)
            _write(inner, "cgroup.procs", "0")
            _write(folder, "cgroup.subtree_control", "+memory +pids")
    except OSError:
        return None
    return CgroupParent(2, {"memory": folder, "pids": folder, "cpuacct": folder})


def _own() -> dict[str, str]:
    """By controller, the folder of this process's own group; that of the second version under no name."""
    mounts: dict[str, tuple[str, str]] = {}
    own: dict[str, str] = {}
    try:
        with open("/proc/self/mountinfo") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                fields, (kind, _, options) = before.split(), after.split()[:3]
                if kind == "cgroup2":
                    mounts[""] = fields[3], fields[4]
                elif kind == "cgroup":
                    mounts.update(dict.fromkeys(options.split(","), (fields[3], fields[4])))
        with open("/proc/self/cgroup") as file:
            for line in file:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                for one in controllers.split(","):
                    if one in mounts:
                        root, point = mounts[one]
                        within = os.path.relpath(path, root)
                        if not within.startswith(os.pardir):
                            own[one] = os.path.normpath(os.path.join(point, within))
    except (OSError, ValueError):
        return {}
    return own


class Group:
    """The group of one run, or one in each hierarchy of the first version.

    Raises:
        OSError: if it cannot be made.
    """

    def __init__(self, where: CgroupParent | None, name: str, memory: int, tasks: int) -> None:
        if where is None:
            raise OSError("there is no place for any")
        self.version = where.version
        self.folders = {kind: os.path.join(folder, PREFIX + name) for kind, folder in where.folders.items()}
        try:
            for folder in dict.fromkeys(self.folders.values()):
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(folder)  # of a process of the same number that was killed
                os.mkdir(folder)
            self._limit(memory, tasks)
        except OSError:
            self.remove()
            raise

    def _limit(self, memory: int, tasks: int) -> None:
        within, memory = self.folders["memory"], memory + COPIES
        _write(self.folders["pids"], "pids.max", str(tasks))
        if self.version == 1:
            _write(within, "memory.limit_in_bytes", str(memory))
            with contextlib.suppress(OSError):  # where swap is not counted
                _write(within, "memory.memsw.limit_in_bytes", str(memory))
            return
        _write(within, "memory.max", str(memory))
        for name, text in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            with contextlib.suppress(OSError):
                _write(within, name, text)

    def join(self) -> None:
        """Put this process, and all that it will start, into the group."""
        for folder in dict.fromkeys(self.folders.values()):
            _write(folder, "cgroup.procs", "0")

    def starved(self) -> bool:
        """Whether the kernel has ended one of its processes because there was no more memory."""
        text = _read(self.folders["memory"], "memory.oom_control" if self.version == 1 else "memory.events")
        found = dict(line.split(None, 1) for line in text.splitlines() if " " in line)
        return found.get("oom_kill", "0").strip() != "0"

    def seconds(self) -> float | None:
        """Of processors, that all its processes have used, those too that have ended."""
        try:
            if self.version == 1:
                return int(_read(self.folders.get("cpuacct", ""), "cpuacct.usage")) / 1e9
            found = dict(line.split() for line in _read(self.folders["memory"], "cpu.stat").splitlines())
            return int(found["usage_usec"]) / 1e6
        except (ValueError, KeyError):
            return None

    def remove(self) -> None:
        """Take the group away, whose processes have ended."""
        until = time.monotonic() + WAIT
        for folder in dict.fromkeys(self.folders.values()):
            while True:
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > until:
                        break
                    time.sleep(0.005)
                else:
                    break


def sweep(where: CgroupParent, server: str) -> None:
    """Take away the groups of this server, and those of others whose guards have been killed."""
    for folder in dict.fromkeys(where.folders.values()):
        with contextlib.suppress(OSError):
            for found in os.listdir(folder):
                kind, _, rest = found.partition("-")
                pid = rest.partition("-")[0]
                if kind + "-" == PREFIX and (pid == server or not os.path.exists("/proc/" + pid)):
                    with contextlib.suppress(OSError):  # It has processes yet.
                        os.rmdir(os.path.join(folder, found))


def available() -> int:
    """The version of control groups that a run can have here, 0 for none: a process is put into one."""
    where = place() if sys.platform == "linux" else None
    if where is None:
        return 0
    try:
        group = Group(where, str(os.getpid()) + "-trial", 1 << 28, 64)
    except OSError:
        return 0
    child = os.fork()
    if child == 0:
        try:
            group.join()
            os._exit(0)
        except BaseException:
            os._exit(1)
    held = os.waitpid(child, 0)[1] == 0
    group.remove()
    return where.version if held else 0


def session() -> dict[str, str]:
    """The variables that tell ``systemd-run`` where the manager of the user's processes is."""
    names = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
    return {name: os.environ[name] for name in names if name in os.environ}


def scope() -> list[str]:
    """The command before a command that starts it in a group of the second version that is its own to divide.

    Nothing where there is no manager of the system or the user that could be asked.
    """
    folder = os.environ.get("XDG_RUNTIME_DIR") or "/run/user/" + str(os.getuid())
    asked = ["--system"] if os.getuid() == 0 else ["--user"]
    running = "/run/systemd/system" if os.getuid() == 0 else os.path.join(folder, "systemd", "private")
    if sys.platform != "linux" or shutil.which("systemd-run") is None or not os.path.exists(running):
        return []
    command = ["systemd-run", *asked, "--scope", "--quiet", "--collect", "--no-ask-password"]
    return [*command, "-p", "Delegate=yes", "--"]


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name)) as file:
            return file.read()
    except OSError:
        return ""


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)
