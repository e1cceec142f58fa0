"""A function of many files, on all processors where that is worth it.

The processes are forked: they inherit the function and the files, and only numbers and results travel.
Where there is no fork, everything happens in this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

WORTH_PROCESSES = 32
"""From so many files on. One takes about 7 ms to check, and the processes 40 ms to start."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

BATCHES = 8
"""Of items of known weight, for each process: few, since each takes a message there and one back."""

_job: Callable[[int], Any]
"""What a forked process does with a number; set before the fork."""


def for_each(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    lost: Callable[[_Item], _Result],
    worth: int = WORTH_PROCESSES,
    weight: Callable[[_Item], int] | None = None,
) -> list[_Result]:
    """``function`` of every item, in order; by several processes from ``worth`` items on.

    By ``weight`` the work on an item can be foreseen: the heavy ones are done first, and light ones together.
    An item whose process dies (it crashed, or the system ran out of memory) gets the result of ``lost``.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(items) < worth or processors < 2 or not hasattr(os, "fork"):
        return [function(item) for item in items]
    global _job

    def _job(number: int) -> _Result:
        return function(items[number])

    results: dict[int, _Result] = {}
    weights = [1] * len(items) if weight is None else list(map(weight, items))
    most = 0 if weight is None else sum(weights) // (processors * BATCHES)
    _in_processes(_batches(weights, most), processors, results)
    # A process that died took its neighbours' work along. Each lost item gets a process of its own,
    # so that only the one which kills it is left without a result.
    for number in range(len(items)):
        if number not in results:
            _in_processes([[number]], 1, results)
    return [results[number] if number in results else lost(item) for number, item in enumerate(items)]


def _batches(weights: Sequence[int], most: int) -> list[list[int]]:
    """The numbers of all items, the heaviest first, in batches that weigh ``most`` or are single."""
    batches: list[list[int]] = []
    room = -1
    for number in sorted(range(len(weights)), key=lambda number: -weights[number]):
        if weights[number] > room:
            batches.append([])
            room = most
        batches[-1].append(number)
        room -= weights[number]
    return batches


def _in_processes(batches: Iterable[list[int]], processes: int, results: dict[int, Any]) -> None:
    """Do the job for the numbers in child processes; those whose process died get no result."""
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
        futures = [(batch, pool.submit(_do, batch)) for batch in batches]
        try:
            for batch, future in futures:
                with suppress(BrokenProcessPool):
                    results.update(zip(batch, future.result()))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _do(batch: list[int]) -> list[Any]:
    return [_job(number) for number in batch]
