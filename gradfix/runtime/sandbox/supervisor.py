"""The supervisor of a run: counts what the kernel does not count here, and answers what its filter asks.

It runs in the probe's server, outside the sandbox. Everything that it looks at (process names, folders,
descriptors) was made by the run and is taken as hostile.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import select
import signal
import socket
import stat
import struct
import sys
import time
from typing import Any, NamedTuple

NOTIFICATION = "=QIIiIQ6Q"
"""``struct seccomp_notif``: id, process, flags; in it ``struct seccomp_data``: call, machine, place,
arguments."""

RECEIVE, SEND = 0xC0502100, 0xC0182101
"""``SECCOMP_IOCTL_NOTIF_RECV`` and ``_SEND``."""

CONTINUE = 1
MMAP = {"x86_64": 9, "aarch64": 222}
SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
"""Of all other calls that are asked about the first argument is a process."""

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

SHORTEST = 0.02
"""Seconds between two looks at a run, at least; a look may take a tenth of the time."""

MANY = 64
"""Processes of a run, from which on nobody can say any more what those that have ended have used."""

ENDING = 10.0
"""Seconds within which the processes of a run end once they are killed: on a machine that has much other work
they have to wait for a processor even for that."""


class Process(NamedTuple):
    """What ``/proc/N/stat`` says of a process."""

    pid: int
    group: int
    threads: int
    began: int
    """When, in ticks: with its number it tells it from all others."""
    used: float
    """Seconds of processors, by all its threads."""
    heirs: float
    """The same by its children that have ended."""


def process(pid: int) -> Process | None:
    """What the system knows of a process, or nothing if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name may hold anything, brackets and spaces too.
            fields = file.read().rpartition(b")")[2].split()
        used, heirs = (sum(map(int, fields[first : first + 2])) / TICKS for first in (11, 13))
        return Process(pid, int(fields[2]), int(fields[17]), int(fields[19]), used, heirs)
    except (OSError, ValueError, IndexError):
        return None


def processes(group: int) -> list[Process]:
    """The processes of a group, which none can leave (``setsid`` and ``setpgid`` do nothing there)."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [found for found in map(process, numbers) if found is not None and found.group == group]


def anonymous(pid: int) -> int:
    """Bytes of a process's own memory; what it shares with its parent is divided among them."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss_Anon:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0


def disk(folder: str, most: int) -> tuple[int, int, bool]:
    """Bytes and entries below a folder, and whether all of it could be seen.

    Counting stops at ``most`` entries.
    """
    size = count = 0
    waiting = [folder]
    while waiting and count <= most:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        count += 1
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                    if count > most:
                        break
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return size, count, False
    return size, count, True


def hidden(pid: int) -> dict[tuple[int, int], int]:
    """Bytes in files that a process holds open and that have no name any more, by device and inode."""
    found: dict[tuple[int, int], int] = {}
    place = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(place):
            with contextlib.suppress(OSError):
                seen = os.stat(place + "/" + name)
                if stat.S_ISREG(seen.st_mode) and seen.st_nlink == 0:
                    found[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
    return found


def tasks_now() -> int:
    """Processes and threads of the whole machine, 0 where that is not known."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def socket_buffers() -> int:
    """Bytes that may wait in a pair of connected sockets, to be read."""
    size = 212992
    with contextlib.suppress(OSError, ValueError), open("/proc/sys/net/core/wmem_default", "rb") as file:
        size = int(file.read())
    return 2 * (size + 65536)  # A last message may pass the limit.


class Supervisor:
    """Watches the process group of one run, from its beginning until nothing of it is left."""

    def __init__(
        self,
        group: int,
        folder: str,
        limits: dict[str, Any],
        grace: float,
        clock: Any,
        *,
        bounded: bool = False,
        unlimited: bool = False,
        cgroup: Any = None,
    ) -> None:
        self.group = group
        self.folder = folder
        self.limits = limits
        self.seconds = limits["seconds"] + grace
        self.clock = clock
        """Of the first process."""
        self.bounded = bounded
        """Whether the kernel counts its tasks."""
        self.unlimited = unlimited
        """Whether not even its first process is held to an amount of memory by itself."""
        self.cgroup = cgroup
        """Its control group, if it has one: tasks and memory are the kernel's then."""
        self.machine = os.uname().machine
        self.next_look = 0.0
        self.listener: int | None = None
        self.private: list[int] = []
        """Descriptors of the folder that it may write to and of its shared memory, if it has its own."""
        self.others_then = tasks_now()
        """Tasks of the whole machine when those of the run were last counted."""
        self.status: int | None = None
        """Of the first process, once it has ended and was taken away."""
        self.granted = 0
        """Bytes that it may keep where none of its processes shows them."""
        self.used: dict[tuple[int, int], float] = {}
        """By process: seconds of processors, as last seen."""

    def connect(self, channel: socket.socket) -> None:
        """Take the descriptor that the run's filter asks on; the run waits with it for us."""
        found = array.array("i")
        with contextlib.suppress(OSError), channel:
            channel.settimeout(10)
            said, rights, _, _ = channel.recvmsg(1, socket.CMSG_LEN(3 * found.itemsize))
            for level, kind, data in rights:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    found.frombytes(data[: len(data) - len(data) % found.itemsize])
            for descriptor in found:
                os.set_inheritable(descriptor, False)
            self.private = list(found)
            if said == b"+" and self.private:
                self.listener = self.private.pop(0)

    # -- what the filter asks -----------------------------------------------------------------

    def answer(self) -> None:
        """Answer all that the run's processes ask: may it keep something unseen, may another get a signal.

        Not whether there may be one more: a call that nobody has received yet fails if a signal comes, and a
        shell that forks does not try again.
        """
        while self.listener is not None:
            waiting = select.poll()
            waiting.register(self.listener, select.POLLIN)
            events = waiting.poll(0)
            if not events:
                return
            if not events[0][1] & select.POLLIN:
                self.hang_up()
                return
            question = bytearray(struct.calcsize(NOTIFICATION))
            try:
                fcntl.ioctl(self.listener, RECEIVE, question)
            except OSError:
                return  # Who asked was ended meanwhile.
            number, _, _, call, _, _, *arguments = struct.unpack(NOTIFICATION, question)
            refusal = self.refusal(call, arguments)
            with contextlib.suppress(OSError):
                reply = struct.pack("=QqiI", number, 0, -refusal, 0 if refusal else CONTINUE)
                fcntl.ioctl(self.listener, SEND, bytearray(reply))

    def refusal(self, call: int, arguments: list[int]) -> int:
        """The number of the error with which a call fails, 0 where it may be made."""
        if call == MMAP.get(self.machine):
            return 0 if self.grant(arguments[1]) else errno.ENOMEM
        if call == SOCKETPAIR.get(self.machine):
            return 0 if self.grant(socket_buffers()) else errno.ENFILE
        return 0 if self.own(arguments[0]) else errno.EPERM

    def grant(self, size: int) -> bool:
        """Whether it may have so many bytes more that no process of its shows; nobody sees when it gives them
        back."""
        if self.granted + size > self.limits["memory"]:
            return False
        self.granted += size
        return True

    def own(self, argument: int) -> bool:
        """Whether a signal for this process, as ``kill`` takes it, stays within the run."""
        number = struct.unpack("=i", struct.pack("=I", argument & 0xFFFFFFFF))[0]
        if number <= 0:
            return number in (0, -self.group)
        found = process(number)
        return found is not None and found.group == self.group

    def others(self) -> float:
        """Seconds of processors that the run has used, beside its first thread."""
        used: float | None
        if self.cgroup is not None:
            used = self.cgroup.seconds()
        else:
            used = sum(self.used.values()) if len(self.used) <= MANY else None
        ran: float = self.clock.ran()
        return float("inf") if used is None else max(0.0, used - ran)

    # -- what is looked at from time to time ---------------------------------------------------

    def excess(self) -> str | None:
        """What the run has used too much of, if it has."""
        now = time.monotonic()
        if now > self.clock.started + self.seconds and self.clock.elapsed(self.others()) > self.seconds:
            return "it did not return in time"
        # So many more on the machine may be this run's, and are looked at at once.
        many = not self.bounded and tasks_now() > self.others_then + self.limits["tasks"] // 2
        if now < self.next_look and not many:
            return None
        try:
            return self.look()
        finally:
            after = time.monotonic()
            self.next_look = after + max(SHORTEST, 10 * (after - now))

    def look(self) -> str | None:
        """One look at processes, memory and disk."""
        limits = self.limits
        size, entries, seen = disk(self.folder, limits["files"])
        if not seen:
            return "it made folders that cannot be looked into"
        kept = [os.fstatvfs(one) for one in self.private]
        # The first of them is what it writes to; the kernel lets it have no more.
        full = kept[0].f_bfree == 0 if kept else False
        if entries > limits["files"] or (kept and kept[0].f_ffree == 0):
            return "it made more than " + str(limits["files"]) + " files"
        if sys.platform == "linux":
            self.others_then = tasks_now()
            found = processes(self.group) if self.cgroup is None else []
            for one in found:
                self.used[one.pid, one.began] = one.used
            if not self.bounded and sum(one.threads for one in found) > limits["tasks"]:
                return "it made more than " + str(limits["tasks"]) + " processes and threads"
            unseen = self.granted + sum((one.f_blocks - one.f_bfree) * one.f_frsize for one in kept)
            if self.starved([one.pid for one in found], unseen):
                return self.too_much_memory()
            if not kept:
                nameless: dict[tuple[int, int], int] = {}
                for one in found:
                    nameless.update(hidden(one.pid))
                size += sum(nameless.values())
        return "it wrote more than " + amount(limits["disk"]) if full or size > limits["disk"] else None

    def starved(self, pids: list[int], unseen: int) -> bool:
        """Whether these processes, with ``unseen`` bytes that they keep elsewhere, need more memory than they
        may."""
        if self.cgroup is not None:
            return bool(self.cgroup.starved())
        # A single one is held to it by itself.
        counts = self.unlimited or len(pids) > 1 or unseen > 0
        return counts and sum(map(anonymous, pids)) + unseen > self.limits["memory"]

    def too_much_memory(self) -> str:
        return "its processes used more than " + amount(self.limits["memory"]) + " of memory"

    # -- the end ------------------------------------------------------------------------------

    def ended_by_kernel(self) -> str | None:
        """Why the kernel has ended a process of the run, as its control group tells until :meth:`end`.

        A process that is killed for memory may be gone before anybody looks.
        """
        return self.too_much_memory() if self.cgroup is not None and self.cgroup.starved() else None

    def over(self) -> bool:
        """Whether the first process has ended.

        It is not taken away yet, so that its number is not given to another group, where the system
        can tell without (macOS cannot before Python 3.13).
        """
        if hasattr(os, "waitid"):
            return os.waitid(os.P_PID, self.group, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        pid, status = os.waitpid(self.group, os.WNOHANG)
        if pid:
            self.status = status
        return bool(pid)

    def end(self) -> int | None:
        """End every process of the run; returns the status of the first one, if it is known.

        All of them are in one group, and its signal cannot be outrun by making new ones. Where the
        server adopts those whose parents have ended, nothing of the run is left on return.
        """
        status = self.status
        with contextlib.suppress(OSError):
            if status is None:
                os.kill(self.group, signal.SIGKILL)  # It may not have made its group yet.
        until = time.monotonic() + ENDING
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                os.killpg(self.group, signal.SIGKILL)
            try:
                while True:
                    pid, found = os.waitpid(-self.group, os.WNOHANG)
                    if pid == self.group:
                        status = found
                    if pid == 0:
                        break
            except ChildProcessError:
                if sys.platform != "linux" or not processes(self.group):
                    break
            self.answer()
            time.sleep(0.005)
        self.hang_up()
        self.clock.close()
        for descriptor in self.private:
            os.close(descriptor)
        if self.cgroup is not None:
            self.cgroup.remove()
        return status

    def hang_up(self) -> None:
        """Answer no more."""
        if self.listener is not None:
            os.close(self.listener)
            self.listener = None


def amount(size: int) -> str:
    """A number of bytes for people."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{round(size / unit, 1):g} {name}"
    return str(size) + " bytes"
