"""The time that a process has had: by the clock, without what it waited for a processor.

On a machine that has other work a run takes several times as long, and what it takes says nothing of the
script. Linux counts for each process how long it could have run and was not let
(``Documentation/scheduler/sched-stats.rst``); elsewhere all time counts. What a process waits for others of
its own run is its own time.
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

    def ran(self) -> float:
        """Seconds that the process, its first thread, has run in its life."""
        return self._said(0)

    def waited(self) -> float:
        """Seconds that the process has waited for a processor in its life."""
        return self._said(1)

    def _said(self, field: int) -> float:
        if self.descriptor is None:
            return 0.0
        try:
            return int(os.pread(self.descriptor, 256, 0).split()[field]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0  # It has ended.

    def elapsed(self, others: float = 0.0) -> float:
        """Seconds without those in which it waited, but a share of ``1 / MOST`` of all seconds at least.

        Args:
            others: Seconds of processors that other processes and threads of the same run have used, which it
                may have waited for.
        """
        passed = time.monotonic() - self.started
        waited = max(0.0, self.waited() - self.before - others)
        return max(passed / MOST, passed - waited)

    def close(self) -> None:
        """Ask no more."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
