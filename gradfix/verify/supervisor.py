"""The supervisor of a run: counts what no limit of the kernel counts, and answers what its filter asks.

It runs in the probe's server, outside the sandbox, in the user's interpreter: standard library only,
no syntax newer than Python 3.9. Everything that it looks at (process names, folders, descriptors)
was made by the run and is taken as hostile.
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
CLONES = {"x86_64": (56, 57, 58), "aarch64": (220,)}
"""The calls that make processes; of all others that are asked about the first argument is a process."""

CLONE_THREAD = 0x00010000

SHORTEST = 0.02
"""Seconds between two looks at a run, at least; a look may take a tenth of the time."""

BIRTH = 0.2
"""Seconds within which a process that was allowed has come to be, and can be counted."""

ENDING = 10.0
"""Seconds within which the processes of a run end once they are killed: on a machine that has much other work
they have to wait for a processor even for that."""


class Process(NamedTuple):
    """What ``/proc/N/stat`` says of a process."""

    pid: int
    group: int
    threads: int


def process(pid: int) -> Process | None:
    """What the system knows of a process, or nothing if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name may hold anything, brackets and spaces too.
            fields = file.read().rpartition(b")")[2].split()
        return Process(pid, int(fields[2]), int(fields[17]))
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


class Supervisor:
    """Watches the process group of one run, from its beginning until nothing of it is left."""

    def __init__(self, group: int, folder: str, limits: dict[str, Any], grace: float, clock: Any) -> None:
        self.group = group
        self.folder = folder
        self.limits = limits
        self.seconds = limits["seconds"] + grace
        self.clock = clock
        """Of the first process."""
        self.next_look = 0.0
        self.listener: int | None = None
        self.alone = True
        """No process was made yet, so that there is the first one only."""
        self.tasks = 1
        """Processes and threads, at most: those last counted and those made since."""
        self.counted = 0.0
        self.status: int | None = None
        """Of the first process, once it has ended and was taken away."""
        self.allowed: list[float] = []
        """When the last ones were allowed."""

    def connect(self, channel: socket.socket) -> None:
        """Take the descriptor that the run's filter asks on; the run waits with it for us."""
        size = array.array("i").itemsize
        with contextlib.suppress(OSError), channel:
            channel.settimeout(10)
            said, rights, _, _ = channel.recvmsg(1, socket.CMSG_LEN(size))
            for level, kind, data in rights:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self.listener = array.array("i", data[:size])[0]
                    os.set_inheritable(self.listener, False)
            self.alone = said == b"+"

    # -- what the filter asks -----------------------------------------------------------------

    def answer(self) -> None:
        """Answer all that the run's processes ask: may there be one more, may it get a signal."""
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
            number, _, _, call, _, _, first, *_ = struct.unpack(NOTIFICATION, question)
            machine = os.uname().machine
            if call in CLONES.get(machine, ()):
                thread = call == CLONES[machine][0] and bool(first & CLONE_THREAD)
                refusal = 0 if self.another(thread) else errno.EAGAIN
            else:
                refusal = 0 if self.own(first) else errno.EPERM
            with contextlib.suppress(OSError):
                reply = struct.pack("=QqiI", number, 0, -refusal, 0 if refusal else CONTINUE)
                fcntl.ioctl(self.listener, SEND, bytearray(reply))

    def another(self, thread: bool) -> bool:
        """Whether there may be one more process or thread."""
        if self.tasks >= self.limits["tasks"] and time.monotonic() - self.counted > SHORTEST:
            self.count()
        if self.tasks >= self.limits["tasks"]:
            return False
        self.tasks += 1
        self.allowed.append(time.monotonic())
        self.alone = self.alone and thread
        return True

    def own(self, argument: int) -> bool:
        """Whether a signal for this process, as ``kill`` takes it, stays within the run."""
        number = struct.unpack("=i", struct.pack("=I", argument & 0xFFFFFFFF))[0]
        if number <= 0:
            return number in (0, -self.group)
        found = process(number)
        return found is not None and found.group == self.group

    def count(self) -> list[Process]:
        """Count processes and threads, and those that were allowed and may not be there yet."""
        self.allowed = [when for when in self.allowed if when > time.monotonic() - BIRTH]
        found = processes(self.group)
        self.tasks = sum(one.threads for one in found) + len(self.allowed)
        self.counted = time.monotonic()
        return found

    # -- what is looked at from time to time ---------------------------------------------------

    def excess(self) -> str | None:
        """What the run has used too much of, if it has."""
        now = time.monotonic()
        if now > self.clock.started + self.seconds and self.clock.elapsed() > self.seconds:
            return "it did not return in time"
        if now < self.next_look:
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
        if entries > limits["files"]:
            return "it made more than " + str(limits["files"]) + " files"
        group = [self.group]
        if sys.platform == "linux":
            if not self.alone:
                found = self.count()
                group = [one.pid for one in found]
                if self.listener is None and self.tasks > limits["tasks"]:
                    return "it made more than " + str(limits["tasks"]) + " processes and threads"
                if len(group) > 1 and sum(map(anonymous, group)) > limits["memory"]:
                    return "its processes used more than " + amount(limits["memory"]) + " of memory"
            nameless: dict[tuple[int, int], int] = {}
            for pid in group:
                nameless.update(hidden(pid))
            size += sum(nameless.values())
        return "it wrote more than " + amount(limits["disk"]) if size > limits["disk"] else None

    # -- the end ------------------------------------------------------------------------------

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
