"""The server: forks a process for each job."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pathlib
import socket
import traceback
from collections.abc import Collection
from typing import Any

from .. import sandbox
from ..sandbox import cgroups, clock, guard, kernel, namespaces, removal, supervisor
from .confining import DESCRIPTORS, given, installed
from .untrusted import IMPORTING, UntrustedInterpreter

NICER = 5
"""How much a run stands back for others: above all for its supervisor, which it waits for."""


class Server:
    """Forks a process for each job, a few at a time, and ends those that overrun."""

    GRACE = 3.0

    def __init__(
        self,
        workers: int,
        held: Collection[str] = (),
        groups: Any = None,
        name: str = "",
        untrusted: UntrustedInterpreter | None = None,
    ) -> None:
        self.workers = workers
        self.untrusted = untrusted
        """The interpreter that jobs are run in, if it is another one."""
        self.held = held
        """What the kernel holds of runs (see ``sandbox.Level``)."""
        self.groups = groups
        """Where control groups for runs are made, if anywhere."""
        self.name = name
        """Of this server, for its groups."""
        self.count = 0
        """Runs so far."""
        self.channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self.requests = os.dup(0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self.waiting: list[str] = []
        self.running: dict[int, tuple[str, Any]] = {}
        self.ends: dict[int, int] = {}
        """By process, where the system has it: a descriptor that can be read when the process has ended."""
        self.equipped = False
        """Whether the stand-ins are loaded."""

    def say(self, **message: Any) -> None:
        """Send one line to the caller."""
        self.channel.write(json.dumps(message) + "\n")
        self.channel.flush()

    def serve(self) -> None:
        """Work until the caller closes the channel; then nothing is left running."""
        import select

        try:
            if self.untrusted is None:
                from . import execution  # It imports torch.

                self.say(ready=execution.warm())
                installed()
            else:
                self.say(ready={})
            kernel.adopt_orphans()
        except Exception as error:
            self.say(fatal=type(error).__name__ + ": " + str(error))
            return
        pending = b""
        try:
            while True:
                asking = [watch.listener for _, watch in self.running.values() if watch.listener is not None]
                wanted = [self.requests, *asking, *self.ends.values()]
                ready, _, _ = select.select(wanted, [], [], 0.01 if self.running else None)
                for _, watch in self.running.values():
                    watch.answer()
                if self.requests in ready:
                    data = os.read(self.requests, 65536)
                    if not data:
                        return
                    *lines, pending = (pending + data).split(b"\n")
                    self.waiting.extend(line.decode() for line in lines)
                self.reap()
                while self.waiting and len(self.running) < self.workers:
                    self.start(self.waiting.pop(0))
        finally:
            for _, watch in list(self.running.values()):
                watch.end()

    def start(self, name: str) -> None:
        """Fork a process for the job in the file ``name``."""
        with open(name, encoding="utf-8") as file:
            job = json.load(file)
        if job["schema"] and not self.equipped and self.untrusted is None:
            # Once for all that follow: compiling them takes most of a second, and nothing keeps the result.
            from .. import alone, standins  # noqa: F401

            gc.freeze()
            self.equipped = True
        self.count += 1
        given.refresh(job)
        group = None
        if sandbox.CGROUP in self.held:
            limits, own = job["limits"], self.name + "-" + str(self.count)
            try:
                group = cgroups.Group(self.groups, own, limits["memory"], limits["tasks"])
            except OSError as error:
                self.say(job=name, signal=None, code=None, why="it got no control group: " + str(error))
                return
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                os.nice(NICER)
                close_all_but(theirs.fileno())
                if self.untrusted is None:
                    from . import execution

                    execution.run(job, theirs, self.held, group)
                else:
                    self.untrusted.run(job, theirs, self.held, group)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(70)
        theirs.close()
        watch = supervisor.Supervisor(
            child,
            job["folder"],
            job["limits"],
            self.GRACE + (IMPORTING if self.untrusted else 0),
            clock.Clock(child),
            bounded=group is not None or sandbox.TASKS in self.held,
            unlimited=self.untrusted is not None,
            cgroup=group,
        )
        watch.connect(ours)
        self.running[child] = (name, watch)
        with contextlib.suppress(AttributeError, OSError):
            self.ends[child] = os.pidfd_open(child)

    def reap(self) -> None:
        """Answer for the processes that have ended; end those that use too much."""
        for child, (name, watch) in list(self.running.items()):
            over = watch.over()
            why = watch.ended_by_kernel() if over else watch.excess()
            if over or why is not None:
                status = watch.end()  # with what it started and left behind
                del self.running[child]
                if child in self.ends:
                    os.close(self.ends.pop(child))
                if why is not None or status is None:
                    self.say(job=name, signal=None, code=None, why=why)
                else:
                    self.say(job=name, signal=status & 0x7F, code=status >> 8, why=None)


def close_all_but(kept: int) -> None:
    """Close what the server has open, other than its standard streams: no run may speak through it."""
    try:
        opened = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        opened = list(range(DESCRIPTORS))
    for descriptor in opened:
        if descriptor > 2 and descriptor != kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def serve(
    workers: int, folder: str, held: Collection[str], untrusted: UntrustedInterpreter | None = None
) -> None:
    """Serve under a guard, which removes ``folder`` if the caller ends before."""
    name = str(os.getpid())
    groups = None
    if sandbox.CGROUP in held:
        groups = cgroups.place()
        # What asks the manager of the user's groups is no business of a script's.
        for variable in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"):
            os.environ.pop(variable, None)

    def clean(left_alone: bool) -> None:
        if groups is not None:
            cgroups.sweep(groups, name)
        if left_alone:
            removal.remove(pathlib.Path(folder))

    if hasattr(os, "fork"):
        guard.guarded(namespaces if sandbox.PROCESSES in held else None, clean)
    Server(workers, held, groups, name, untrusted).serve()
