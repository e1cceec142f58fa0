"""A function of many files, on all processors where that is worth it.

The processes are forked: they inherit the function and the files, and only numbers and results travel.
Where there is no fork, everything happens in this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

WORTH_PROCESSES = 32
"""From so many files on. One takes about 7 ms to check, and the processes 40 ms to start."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_job: Callable[[int], Any]
"""What a forked process does with a number; set before the fork."""


def for_each(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    lost: Callable[[_Item], _Result],
    worth: int = WORTH_PROCESSES,
) -> list[_Result]:
    """``function`` of every item, in order; by several processes from ``worth`` items on.

    An item whose process dies (it crashed, or the system ran out of memory) gets the result of ``lost``.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(items) < worth or processors < 2 or not hasattr(os, "fork"):
        return [function(item) for item in items]
    global _job

    def _job(number: int) -> _Result:
        return function(items[number])

    results: dict[int, _Result] = {}
    _in_processes(range(len(items)), processors, results)
    # A process that died took its neighbours' work along. Each lost item gets a process of its own,
    # so that only the one which kills it is left without a result.
    for number in range(len(items)):
        if number not in results:
            _in_processes([number], 1, results)
    return [results[number] if number in results else lost(item) for number, item in enumerate(items)]


def _in_processes(numbers: Sequence[int], processes: int, results: dict[int, Any]) -> None:
    """Do the job for ``numbers`` in child processes; those whose process died get no result."""
    import multiprocessing
    import signal
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("fork"),
        # Interrupted children end at once and quietly; the parent has the last word.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_DFL),
    )
    with pool:
        futures = {number: pool.submit(_do, number) for number in numbers}
        try:
            for number, future in futures.items():
                with suppress(BrokenProcessPool):
                    results[number] = future.result()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _do(number: int) -> Any:
    return _job(number)
