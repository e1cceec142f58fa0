"""What a run may use is bounded, and nothing of it is left when it is over."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from redteam import LANDLOCK, LIMITS, Attack

from gradfix.verify import clock, sandbox, supervisor
from gradfix.verify.recording import Recording
from gradfix.verify.runner import Limits

pytest_plugins = ("redteam",)

pytestmark = pytest.mark.skipif(LANDLOCK is None, reason="there is no Landlock here")

TIGHT = replace(LIMITS, seconds=3, tasks=24)


def here() -> sandbox.Level:
    assert LANDLOCK is not None
    return LANDLOCK


def tasks_below(ancestor: int) -> int:
    """Processes and threads that descend from a process, and all in the groups of its descendants."""
    parents: dict[int, int] = {}
    threads: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        parents[int(place.parent.name)], threads[int(place.parent.name)] = int(fields[1]), int(fields[17])
    count = 0
    for pid in parents:
        above = pid
        while above in parents and above != ancestor:
            above = parents[above]
        count += threads[pid] if above == ancestor and pid != ancestor else 0
    return count


class Meter:
    """Asks again and again, in a thread, how much there is of something, and keeps the most."""

    def __init__(self, ask: Callable[[], int]) -> None:
        self._ask, self._over = ask, threading.Event()
        self.most = 0
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.03):
            self.most = max(self.most, self._ask())


FORKS = """
started = time.time()
while time.time() - started < 2:
    try: os.fork()
    except OSError: time.sleep(0.01)
time.sleep(60)
"""
VFORKS = """
import subprocess
started, kept = time.time(), []
while time.time() - started < 2:
    try: kept.append(subprocess.Popen(["/bin/sleep", "60"]))
    except OSError: time.sleep(0.01)
time.sleep(60)
"""
THREADS = """
import threading
started, wait = time.time(), threading.Event()
while time.time() - started < 2:
    try: threading.Thread(target=wait.wait, daemon=True).start()
    except RuntimeError: time.sleep(0.01)
time.sleep(60)
"""
SHELL = r"""
os.system("bash -c 'b() { b | b & }; b; sleep 2'")
time.sleep(60)
"""


@pytest.mark.parametrize("code", [FORKS, VFORKS, THREADS, SHELL], ids=["fork", "vfork", "threads", "shell"])
def test_a_bomb_does_not_go_off(code: str, attack: Attack) -> None:
    attack(here(), "", apart=False)  # The server is there.
    before = tasks_below(os.getpid())
    with Meter(lambda: tasks_below(os.getpid())) as meter:
        recording = attack(here(), code, apart=False, limits=TIGHT)
    assert recording.ending in ("seconds", "killed"), (recording.detail, recording.uncaught, recording.output)
    # The meter and what the server itself has are in it too; a bomb would show hundreds.
    assert TIGHT.tasks // 2 < meter.most <= before + 2 * TIGHT.tasks
    assert tasks_below(os.getpid()) <= before
    assert "alive" in attack(here(), "print('alive')", apart=False).output


def grew(code: str, attack: Attack, **limits: int) -> Recording:
    return attack(here(), code, apart=False, limits=replace(LIMITS, **limits))


TOO_MUCH: dict[str, tuple[str, dict[str, int], str]] = {
    "many files": (
        "for number in range(3000):\n    open('f%d' % number, 'w').close()\nprint('made'); time.sleep(1)",
        {"files": 500},
        "it made more than 500 files",
    ),
    "much in files": (
        "for number in range(40):\n    open('f%d' % number, 'wb').write(bytes(1 << 20))\n"
        "print('made'); time.sleep(1)",
        {"disk": 8 << 20},
        "it wrote more than 8 MiB",
    ),
    "much in files without a name": (
        "kept = []\nfor number in range(40):\n    kept.append(open('f', 'wb'))\n"
        "    kept[-1].write(bytes(1 << 20))\n"
        "    kept[-1].flush(); os.unlink('f')\nprint('made'); time.sleep(1)",
        {"disk": 8 << 20},
        "it wrote more than 8 MiB",
    ),
    "folders that cannot be looked into": (
        # In C, for Python's own functions are not let into a folder whose name is too long to tell.
        "import tempfile; os.chdir(tempfile.gettempdir())\n"
        "libc, name = ctypes.CDLL(None), b'deeper-and-deeper'\n"
        "for number in range(600): libc.mkdir(name, 0o700); libc.chdir(name)\n"
        "time.sleep(6)",
        {},
        "it made folders that cannot be looked into",
    ),
    "memory of many processes": (
        "kept = b''\nfor number in range(4):\n    if os.fork() == 0:\n"
        # Each is far below what one may use, which is as much as all of them.
        "        kept = os.urandom(1 << 20) * 100; time.sleep(3); os._exit(0)\n"
        "for number in range(4): os.wait()\nprint('made')",
        {"memory": 200 << 20},
        "its processes used more than 200 MiB of memory",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_ends_the_run(name: str, attack: Attack) -> None:
    code, limits, reason = TOO_MUCH[name]
    recording = grew(code, attack, **limits)
    assert recording.ending == "killed" and recording.detail.startswith(reason), (recording, recording.output)
    if name != "folders that cannot be looked into":
        enough = grew(code, attack, files=5000, disk=1 << 30, memory=2 << 30)
        assert enough.ending == "finished" and "made" in enough.output, enough


def test_a_program_may_lose_its_folder(attack: Attack) -> None:
    """Its own error is told, at its line, and the rest of it is recorded."""
    lost = attack(here(), "os.mkdir('f'); os.chdir('f'); os.rmdir('../f')\nos.mkdir('g')", apart=False)
    assert lost.ending == "error" and lost.uncaught is not None, lost.output
    assert lost.uncaught.type == "FileNotFoundError" and lost.uncaught.place.line


def test_one_file_and_one_process_s_memory_are_bounded(attack: Attack) -> None:
    code = """
try:
    file = open("big", "wb", buffering=0)
    while True: file.write(bytes(1 << 20))
except OSError as error: print(error.strerror, os.path.getsize("big") >> 20)
try: kept = bytearray(3 << 30)
except MemoryError: print("no memory")
import torch
try: torch.ones(3 << 28)
except RuntimeError: print("no tensor")
try:
    kept = open("/dev/shm/big", "wb", buffering=0)
    for number in range(40):
        file = open("/dev/shm/big%d" % number, "wb", buffering=0)
        while file.tell() < 60 << 20: file.write(bytes(1 << 20))
except OSError as error: print(error.strerror)
"""
    recording = attack(here(), code, apart=False)
    assert "File too large 64" in recording.output and recording.output.count("no ") == 2, recording.output
    assert recording.ending == "finished", recording
    if here().memory:
        assert "No space left on device" in recording.output


def test_an_endless_run_is_ended_with_all_that_it_started(attack: Attack) -> None:
    code = "import signal\nfor number in range(1, 32):\n"
    code += "    try: signal.signal(number, signal.SIG_IGN)\n    except OSError: pass\n"
    code += "for number in range(3):\n    if os.fork() == 0: break\nwhile True: pass\n"
    attack(here(), "", apart=False)
    before = tasks_below(os.getpid())
    started = time.monotonic()
    recording = attack(here(), code, apart=False, limits=replace(LIMITS, seconds=1))
    assert recording.ending in ("seconds", "killed")
    assert time.monotonic() - started < 30
    assert tasks_below(os.getpid()) <= before


def test_a_signal_s_target_is_read_as_the_kernel_reads_it(tmp_path: Path) -> None:
    watch = supervisor.Supervisor(os.getpgid(0), str(tmp_path), {**vars_of(LIMITS)}, 1.0, clock.Clock())
    assert watch.own(os.getpid()) and watch.own(0)
    assert watch.own((-os.getpgid(0)) & 0xFFFFFFFFFFFFFFFF)
    assert not watch.own(1) and not watch.own(0xFFFFFFFF) and not watch.own((-1) & 0xFFFFFFFFFFFFFFFF)


def vars_of(limits: Limits) -> dict[str, float]:
    return {name: getattr(limits, name) for name in ("seconds", "tasks", "files", "disk", "memory")}


def test_the_count_sees_hard_cases(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(bytes(8192))
    (tmp_path / "loop").symlink_to(tmp_path)
    size, entries, seen = supervisor.disk(str(tmp_path), 100)
    assert (entries, seen) == (3, True) and size >= 8192
    assert supervisor.disk(str(tmp_path), 1)[1] == 2
    with (tmp_path / "gone").open("wb") as file:
        file.write(bytes(16384))
        file.flush()
        (tmp_path / "gone").unlink()
        assert sum(supervisor.hidden(os.getpid()).values()) >= 16384
    if os.getuid():
        (tmp_path / "dark").mkdir(mode=0)
        assert not supervisor.disk(str(tmp_path), 100)[2]


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_a_process_is_known_whatever_it_calls_itself() -> None:
    found = supervisor.process(os.getpid())
    assert (
        found is not None and (found.pid, found.group) == (os.getpid(), os.getpgid(0)) and found.threads >= 1
    )
    assert supervisor.process(2**22 + 1) is None
