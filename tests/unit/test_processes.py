"""Many items on all processors: every item gets its result, whatever happens to a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gradfix.system.parallel import before_leaving, for_each

ITEMS = list(range(50))


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that are forked in the test."""
    fork = os.fork
    found: list[int] = []

    def recorded() -> int:
        found.append(fork())
        return found[-1]

    monkeypatch.setattr(os, "fork", recorded)
    return found


def lost(item: int) -> str:
    return f"lost {item}"


def all_waited_for(processes: list[int]) -> bool:
    """Whether each has ended, and nobody is left to be asked how."""
    for process in processes:
        try:
            os.waitpid(process, os.WNOHANG)
        except ChildProcessError:
            continue
        return False
    return bool(processes)


def test_results_come_in_the_order_of_the_items_and_from_other_processes(forked: list[int]) -> None:
    results = for_each(lambda item: (item, os.getpid()), ITEMS, lambda _: (0, 0), weight=lambda item: item)
    assert [item for item, _ in results] == ITEMS
    assert os.getpid() not in {process for _, process in results}
    assert all_waited_for(forked)


@pytest.mark.parametrize("allowed", [0, 1])
def test_where_no_more_processes_can_be_made_the_work_is_done_all_the_same(
    allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, ends = os.fork, len(os.listdir("/dev/fd"))
    made: list[int] = []

    def refused() -> int:
        if len(made) == allowed:
            raise BlockingIOError("no more processes")
        made.append(fork())
        return made[-1]

    monkeypatch.setattr(os, "fork", refused)
    assert for_each(lambda item: item + 1, ITEMS, lambda _: 0) == [item + 1 for item in ITEMS]
    assert len(made) == allowed
    assert len(os.listdir("/dev/fd")) == ends
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_results_larger_than_a_pipe_holds_arrive_whole() -> None:
    results = for_each(lambda item: bytes([item]) * 300_000, ITEMS, lambda _: b"")
    assert results == [bytes([item]) * 300_000 for item in ITEMS]


def test_what_the_function_raises_is_raised(forked: list[int]) -> None:
    def function(item: int) -> str:
        if item == 30:
            raise LookupError("thirty")
        return str(item)

    with pytest.raises(LookupError, match="thirty"):
        for_each(function, ITEMS, lost)
    assert all_waited_for(forked)


def test_a_large_result_that_nobody_waits_for_any_more_holds_up_nothing(forked: list[int]) -> None:
    def function(item: int) -> bytes:
        if item == 0:
            raise LookupError("zero")
        return bytes(300_000)

    with pytest.raises(LookupError, match="zero"):
        for_each(function, ITEMS, lambda _: b"")
    assert all_waited_for(forked)


@pytest.mark.parametrize("weight", [None, lambda item: 1], ids=["single", "batches"])
def test_only_the_item_that_kills_its_process_is_lost(weight: None, forked: list[int]) -> None:
    def function(item: int) -> str:
        if item in (7, 31):
            os.kill(os.getpid(), signal.SIGKILL)
        return str(item)

    expected = [lost(item) if item in (7, 31) else str(item) for item in ITEMS]
    assert for_each(function, ITEMS, lost, weight=weight) == expected
    assert all_waited_for(forked)


def test_a_result_that_cannot_travel_is_lost() -> None:
    results = for_each(lambda item: threading.Lock() if item == 3 else str(item), ITEMS, lost)
    assert results == [lost(item) if item == 3 else str(item) for item in ITEMS]


def test_few_items_are_done_here() -> None:
    assert for_each(lambda _: os.getpid(), [1, 2], lambda _: 0) == [os.getpid()] * 2


def test_what_a_process_has_to_do_before_it_leaves_is_done_once(tmp_path: Path) -> None:
    def function(item: int) -> int:
        if item in (3, 4):
            before_leaving(lambda: (tmp_path / str(item)).write_text("left"))
        return item

    assert for_each(function, ITEMS, lambda _: 0) == ITEMS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "4"]
    before_leaving(lambda: (tmp_path / "here").write_text("left"))
    assert not (tmp_path / "here").exists()


INTERRUPTED = """
import os, signal
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
from gradfix.system.interrupts import Interrupted
from gradfix.system.parallel import for_each
try:
    for_each(str, list(range(200)), str, worth=2)
except Interrupted as interrupt:
    print("interrupted", interrupt.number)
"""


def test_an_interrupt_right_after_a_fork_is_not_told_of() -> None:
    """Python tells of an exception in what it calls after a fork, and goes on."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr) == ("interrupted 2\n", "")
