"""The guard of a server: nothing that the server starts outlives it, nor gradfix.

The guard is a small process between gradfix and the server that imports torch. Where there are namespaces,
the server's processes are in one whose first process ends when the guard does, and then the kernel ends all
of them. Elsewhere the guard adopts what the server leaves, and ends it by its groups, which no run can leave.
When gradfix ends, however that comes about, the guard ends all of it and removes the folder.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from .kernel import adopt_orphans, die_with_parent

EVERY = 0.2
"""Seconds between two looks whether gradfix is there."""
PATIENCE = 5.0
"""Seconds that the server has to end by itself when its client is gone."""
LONGEST = 10.0
"""Seconds within which killed processes have ended."""


def guarded(namespaces: Any, clean: Callable[[bool], None]) -> None:
    """Return in a process that is guarded; the guard itself ends with it, and never returns.

    Args:
        namespaces: The module of that name, where the server is to have one of processes; else nothing.
        clean: Called in the end, with whether gradfix has ended before, so that it cannot remove its folders.
    """
    parent = os.getppid()
    if namespaces is not None:
        namespaces.enter()
    else:
        adopt_orphans()
    alive, hold = os.pipe()
    child = os.fork()
    if child:
        os.close(alive)
        _Guard(child, parent, clean, alone=namespaces is None).watch()
    os.close(hold)
    # The first process of a namespace is ended by nothing else that comes from without.
    _die_with_parent(alive)
    if namespaces is not None:
        namespaces.mount_proc()
        server = os.fork()
        if server:
            _be_first(server)
        # Its session would be that of a process outside, which has no number here.
        os.setsid()
        _die_with_parent(None)
    os.close(alive)


def _be_first(server: int) -> None:
    """Take away the processes whose parents have ended, until the server ends; with this process all do."""
    os.closerange(0, 3)
    while True:
        ended, status = os.wait()
        if ended == server:
            os._exit(_code(status))


def _die_with_parent(alive: int | None) -> None:
    die_with_parent()
    # It may have ended before that was said; then nobody holds the other end of the pipe.
    if alive is not None and select.select([alive], [], [], 0)[0]:
        os._exit(1)


class _Guard:
    """Waits for the server, and looks now and then whether gradfix is there."""

    def __init__(self, child: int, parent: int, clean: Callable[[bool], None], alone: bool) -> None:
        self.child, self.parent, self.clean = child, parent, clean
        self.alone = alone
        """Whether the kernel does not end the server's processes by itself."""
        self.unspoken: float | None = None
        """When the client of the server was gone."""

    def watch(self) -> None:
        """Until the server has ended; this process ends then, with its code."""
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self.end())
        signal.signal(signal.SIGALRM, self.look)
        signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
        _, status = os.waitpid(self.child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.end(_code(status))

    def look(self, *_: object) -> None:
        """End everything if gradfix is not there."""
        if os.getppid() != self.parent:
            self.end()
        waiting = select.poll()
        waiting.register(0, 0)
        if any(event & select.POLLHUP for _, event in waiting.poll(0)):
            self.unspoken = self.unspoken or time.monotonic()
            if time.monotonic() > self.unspoken + PATIENCE:
                self.end()

    def end(self, code: int = 1) -> None:
        """End all processes, and this one."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        with contextlib.suppress(OSError):
            os.kill(self.child, signal.SIGKILL)
        until = time.monotonic() + LONGEST
        while time.monotonic() < until and _reap():
            if self.alone:
                _end_groups()
            time.sleep(0.005)
        with contextlib.suppress(Exception):  # Whatever is left is swept by a later run.
            self.clean(os.getppid() != self.parent)
        os._exit(code)


def _reap() -> bool:
    """Take away what has ended; whether there are children left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end_groups() -> None:
    """Kill the groups of all children: the server's, and those of runs that it has left behind."""
    own = os.getpgid(0)
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open("/proc/" + str(int(name)) + "/stat", "rb") as file:
                parent, group = map(int, file.read().rpartition(b")")[2].split()[1:3])
            if parent == os.getpid() and group == own:
                os.kill(int(name), signal.SIGKILL)
            elif parent == os.getpid():
                os.killpg(group, signal.SIGKILL)


def _code(status: int) -> int:
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
