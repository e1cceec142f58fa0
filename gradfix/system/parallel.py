"""Mapping a function over files on several processes, where that pays off.

The processes are forked: they inherit the function and the files, and only numbers and results travel.
Where there is no fork, everything happens in this process.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice
from typing import Any, TypeVar

from gradfix.system import interrupts
from gradfix.system.interrupts import Interrupted

WORTH_PROCESSES = 32
"""From so many files on. One takes about 7 ms to check, and the processes 40 ms to start."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

LENGTH = 8
"""Bytes that tell how long a message between two processes is."""
SHARE = 4
"""A batch of items of known weight is this part of what is left to do, divided among the processes: large
at first, since each takes a message there and one back, and small in the end, when all wait for the last."""

_job: Callable[[int], Any]
"""What a forked process does with a number; set before the fork."""
_leaving: ExitStack | None = None
"""What a forked process does before it ends."""


_most: int | None = None


def use_processors(most: int) -> None:
    """Start at most so many processes at once, from now on."""
    global _most
    _most = most


def _processors() -> int:
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return there if _most is None else _most


def for_each(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    lost: Callable[[_Item], _Result],
    worth: int = WORTH_PROCESSES,
    weight: Callable[[_Item], int] | None = None,
    done: Callable[[], None] = lambda: None,
) -> list[_Result]:
    """``function`` of every item, in order; by several processes from ``worth`` items on.

    By ``weight`` the work on an item can be foreseen: the heavy ones are done first, and light ones together.
    An item whose process dies (it crashed, or the system ran out of memory) gets the result of ``lost``.
    ``done`` is called in this process, once for each item, when there is a result.
    """
    processors = _processors()
    if len(items) < worth or processors < 2 or not hasattr(os, "fork"):
        return [_unless_interrupted(function, item, done) for item in items]
    global _job

    def _job(number: int) -> _Result:
        return function(items[number])

    results: dict[int, _Result] = {}
    if weight is None:
        batches = [[number] for number in range(len(items))]
    else:
        batches = _batches(list(map(weight, items)), processors * SHARE)
    _in_processes(batches, processors, results, done, ahead=weight is not None)
    # A process that died took its neighbours' work along. Each lost item gets a process of its own,
    # so that only the one which kills it is left without a result.
    for number in range(len(items)):
        if number not in results:
            _in_processes([[number]], 1, results, done)
    return [results[number] if number in results else lost(item) for number, item in enumerate(items)]


def _unless_interrupted(
    function: Callable[[_Item], _Result], item: _Item, done: Callable[[], None]
) -> _Result:
    interrupts.check()
    result = function(item)
    done()
    return result


def before_leaving(function: Callable[[], object]) -> None:
    """Have ``function`` called at the end of this process, if it is one that :func:`for_each` has forked.

    Such a process ends without coming back to where it was forked. Elsewhere nothing happens.
    """
    if _leaving is not None:
        _leaving.callback(function)


def is_forked() -> bool:
    """Whether this process is one that :func:`for_each` has forked."""
    return _leaving is not None


def _batches(weights: Sequence[int], shares: int) -> list[list[int]]:
    """The numbers of all items, the heaviest first, in batches: single, or a share of the rest in weight."""
    batches: list[list[int]] = []
    rest = sum(weights)
    room = -1
    for number in sorted(range(len(weights)), key=lambda number: -weights[number]):
        if weights[number] > room:
            batches.append([])
            room = rest // shares
        batches[-1].append(number)
        room -= weights[number]
        rest -= weights[number]
    return batches


def _in_processes(
    batches: Sequence[list[int]],
    processes: int,
    results: dict[int, Any],
    done: Callable[[], None],
    *,
    ahead: bool = False,
) -> None:
    """Do the job for the numbers in child processes; those whose process died get no result.

    With the next batch ``ahead``, no process waits for this one between two, but all may for the last. Where
    the system lets no process be made, the job is done in this one.

    Raises what the job raises for some number. An interrupt ends the children as well.
    """
    waiting = iter(batches)
    workers: list[_Worker] = []
    try:
        with selectors.DefaultSelector() as selector:
            for batch in islice(waiting, processes):
                try:
                    interrupts.check()
                    worker = _Worker(workers)
                except OSError:
                    # The system allows no more processes: what is left is done by those that there are.
                    waiting = chain([batch], waiting)
                    break
                workers.append(worker)
                selector.register(worker.answers, selectors.EVENT_READ, worker)
                worker.give(batch)
            for batch in () if workers else waiting:
                results.update((number, _unless_interrupted(_job, number, done)) for number in batch)
            for worker, batch in zip(workers, waiting if ahead else ()):
                worker.give(batch)
            while selector.get_map():
                for key, _ in selector.select():
                    worker = key.data
                    taken = worker.take()
                    results.update(taken)
                    for _ in taken:
                        done()
                    worker.give(next(waiting, None))
                    if not worker.given:
                        selector.unregister(worker.answers)
    except (KeyboardInterrupt, Interrupted):
        # One that was being forked meanwhile has not noticed.
        for worker in workers:
            worker.interrupt()
        raise
    finally:
        for worker in workers:
            worker.dismiss()
        for worker in workers:
            worker.wait()


class _Worker:
    """A forked process that does the job for the batches that it is given, one after the other.

    ``concurrent.futures`` does as much, with a thread, locks and sockets that take longer to start than the
    check of a folder of scripts may take.
    """

    def __init__(self, others: Iterable[_Worker]) -> None:
        asked, self._questions = os.pipe()
        self.answers, answered = os.pipe()
        self.given: deque[list[int]] = deque()
        """What has not been answered yet."""
        self._ended_by: int | None = None
        """The signal that ended it, 0 if none did; None while it may still run."""
        # An interrupt waits until the child knows what to do with it: in what Python calls after a fork it
        # would be told of, and swallowed.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, interrupts.SIGNALS)
        try:
            self._pid = os.fork()
            if self._pid:
                interrupts.born(self._pid)
            else:
                # Interrupted children end at once and quietly; the parent has the last word.
                interrupts.leave_to_the_system()
        except OSError:
            for end in (asked, answered, self.answers, self._questions):
                os.close(end)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        if self._pid:
            os.close(asked)
            os.close(answered)
            return
        try:
            # While a brother holds the other end of a pipe, nobody is told that nothing more comes.
            # Nor is it told, while it holds the other end of its own, that nobody listens any more.
            for worker in (self, *others):
                worker.dismiss()
            global _leaving
            with ExitStack() as _leaving:
                while (numbers := _receive(asked)) is not None:
                    _send(answered, _do(numbers))
        finally:
            os._exit(0)

    def give(self, batch: list[int] | None) -> None:
        """Add to what it has to do, if there is anything and it lives."""
        if batch is not None:
            with suppress(BrokenPipeError):
                _send(self._questions, batch)
                self.given.append(batch)

    def take(self) -> dict[int, Any]:
        """The next results, by number; none if it died, and then it has nothing more to do.

        Raises ``Interrupted`` if it was interrupted, as a terminal does it to all processes.
        """
        answer = _receive(self.answers)
        if answer is None:
            self.given.clear()
            self.wait()
            if self._ended_by == signal.SIGINT:
                raise Interrupted(self._ended_by)
            return {}
        if isinstance(answer, Exception):
            raise answer
        return dict(zip(self.given.popleft(), answer))

    def dismiss(self) -> None:
        """Close this side's ends of its pipes: it ends when it has done what it is at."""
        os.close(self._questions)
        os.close(self.answers)

    def interrupt(self) -> None:
        """End it at once, if it still runs."""
        if self._ended_by is None:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._ended_by is None:
            _, status = os.waitpid(self._pid, 0)
            self._ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            interrupts.gone(self._pid)


def _do(numbers: list[int]) -> list[Any] | Exception:
    try:
        return [_job(number) for number in numbers]
    except Exception as error:
        return error


def _send(pipe: int, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    data = len(data).to_bytes(LENGTH, "big") + data
    while data:
        data = data[os.write(pipe, data) :]


def _receive(pipe: int) -> Any:
    """The next message; None if the other side is gone."""
    length = _read(pipe, LENGTH)
    data = _read(pipe, int.from_bytes(length, "big")) if length else None
    return pickle.loads(data) if data else None


def _read(pipe: int, length: int) -> bytes | None:
    parts = []
    while length:
        part = os.read(pipe, length)
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
