"""The time that a process has had: by the clock, without what it waited for a processor.

Loaded by its path in the user's interpreter (see ``probe.py``): standard library only, no syntax newer
than Python 3.9. On a machine that has other work a run takes several times as long, and what it takes
says nothing of the script. Linux counts for each process how long it could have run and was not let
(``Documentation/scheduler/sched-stats.rst``); elsewhere all time counts.
"""

from __future__ import annotations

import contextlib
import os
import time

MOST = 4
"""How many times the seconds that it may use a process may last by the clock."""


class Clock:
    """The time of a process since the clock was made.

    Args:
        process: Its number, or ``self``: of several threads the first one counts.
    """

    def __init__(self, process: int | str = "self") -> None:
        self.started = time.monotonic()
        self.descriptor: int | None = None
        with contextlib.suppress(OSError):
            # Kept open, for a process may confine itself so that it cannot open it any more.
            self.descriptor = os.open("/proc/" + str(process) + "/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self.before = self.waited()

    def waited(self) -> float:
        """Seconds that the process has waited for a processor in its life."""
        if self.descriptor is None:
            return 0.0
        try:
            return int(os.pread(self.descriptor, 256, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0  # It has ended.

    def elapsed(self) -> float:
        """Seconds without those in which it waited, but a share of ``1 / MOST`` of all seconds at least."""
        passed = time.monotonic() - self.started
        return max(passed / MOST, passed - (self.waited() - self.before))

    def close(self) -> None:
        """Ask no more."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
