"""What a run may use is bounded, and nothing of it is left when it is over."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from redteam import LANDLOCK, LIMITS, Attack

from gradfix.runtime import sandbox
from gradfix.runtime.probe.server import Server
from gradfix.runtime.sandbox import clock, levels, supervisor
from gradfix.verify.jobs import Limits
from gradfix.verify.obstacles import obstacle
from gradfix.verify.recording.records import Recording

pytest_plugins = ("redteam",)

pytestmark = pytest.mark.skipif(LANDLOCK is None, reason="there is no Landlock here")

TIGHT = replace(LIMITS, seconds=3, tasks=24)


def here() -> levels.Level:
    assert LANDLOCK is not None
    return LANDLOCK


MODES = {
    "all that there is": {},
    "no control groups": {"held": (sandbox.PROCESSES, sandbox.TASKS)},
    "nothing but Landlock": {"held": (), "memory": False},
}
"""Machines like this one with less in them."""


def level(mode: str) -> levels.Level:
    """This machine's, with no more than that."""
    less = MODES[mode]
    held = tuple(one for one in here().held if one in less.get("held", here().held))
    return here()._replace(held=held, memory=here().memory and less.get("memory", True))


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


@pytest.mark.sampled(every=2)
@pytest.mark.skipif(
    LANDLOCK is None or not {sandbox.TASKS, sandbox.CGROUP} & set(LANDLOCK.held),
    reason="nothing counts tasks",
)
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


def test_a_bomb_that_goes_off_is_put_out_at_once(attack: Attack) -> None:
    """Where the kernel does not count."""
    mode = "nothing but Landlock"
    attack(level(mode), "", apart=False)
    before = tasks_below(os.getpid())
    code = "for number in range(300):\n    if os.fork() == 0: time.sleep(20); os._exit(0)\ntime.sleep(20)"
    started = time.monotonic()
    recording = attack(level(mode), code, apart=False, limits=replace(LIMITS, seconds=15))
    assert recording.detail == "it made more than 48 processes and threads", recording
    assert time.monotonic() - started < 14 and tasks_below(os.getpid()) <= before


def grew(code: str, attack: Attack, mode: str = "all that there is", **limits: int) -> Recording:
    return attack(level(mode), code, apart=False, limits=replace(LIMITS, **limits))


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
    "much in files of a thread of its own": (
        # A thread whose table of open files is its own.
        "import threading\nlibc, kept = ctypes.CDLL(None), []\n"
        "def work():\n    libc.syscall(436, 900, 901, 2)  # close_range(..., CLOSE_RANGE_UNSHARE)\n"
        "    for number in range(40):\n        kept.append(open('f%d' % number, 'wb', buffering=0))\n"
        "        kept[-1].write(bytes(1 << 20)); os.unlink('f%d' % number)\n"
        "    print('made'); time.sleep(1)\n"
        "one = threading.Thread(target=work); one.start(); one.join()",
        {"disk": 8 << 20},
        "it wrote more than 8 MiB",
    ),
    "much in files on their way": (
        "import socket\nkept = []\nfor number in range(40):\n    if not number % 8:\n"
        "        kept.append(socket.socketpair())\n"
        "    with open('f', 'wb', buffering=0) as file:\n        os.unlink('f'); file.write(bytes(1 << 20))\n"
        "        try: socket.send_fds(kept[-1][0], [b'.'], [file.fileno()])\n"
        "        except OSError as error: print(error.strerror); break\nprint('made'); time.sleep(1)",
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
    "memory that two processes share": (
        # All that is mapped of each at last is one page; the others are there all the same.
        "import mmap\nlibc = ctypes.CDLL(None)\nlibc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]\n"
        "libc.mmap.restype = ctypes.c_void_p\nfor number in range(20):\n"
        "    place = libc.mmap(None, ctypes.c_size_t(32 << 20), 3, 0x21, -1, ctypes.c_long(0))\n"
        "    if place in (None, 2**64 - 1): print('refused'); break\n"
        "    ctypes.memset(place, 1, 32 << 20); libc.munmap(place + 4096, (32 << 20) - 4096)\n"
        "print('made'); time.sleep(1)",
        {"memory": 200 << 20},
        "its processes used more than 200 MiB of memory",
    ),
    "memory that waits in sockets": (
        "import socket\nkept = []\ntry:\n  for number in range(450):\n"
        "    kept.append(socket.socketpair())\n    for one in kept[-1]:\n"
        "        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22); one.setblocking(False)\n"
        "        try:\n            while True: one.send(bytes(1 << 16))\n"
        "        except BlockingIOError: pass\n"
        "except OSError as error: print('refused', error.strerror)\nprint('made'); time.sleep(1)",
        {"memory": 200 << 20},
        "its processes used more than 200 MiB of memory",
    ),
}

REFUSED = {
    "much in files on their way": ("Operation not permitted", "nothing but Landlock"),
    "much in files of a thread of its own": ("it wrote more than", "nothing but Landlock"),
    "memory that two processes share": ("refused", "no control groups"),
    "memory that waits in sockets": ("refused", "no control groups"),
}
"""What is refused instead, where the kernel does not count it; on which machines."""
UNSEEN = "folders that cannot be looked into"


def cases() -> list[tuple[str, str]]:
    """What is tried on which machines: with what counts it, and with less."""
    counted = {name: "no control groups" if "memory" in name else "nothing but Landlock" for name in TOO_MUCH}
    return [(name, mode) for name, less in counted.items() for mode in ("all that there is", less)]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(("name", "mode"), cases())
def test_too_much_ends_the_run(name: str, mode: str, attack: Attack) -> None:
    code, limits, reason = TOO_MUCH[name]
    if name == UNSEEN and level(mode).memory:
        pytest.skip("its folder is its own, and the kernel holds that to its size")
    recording = grew(code, attack, mode, **limits)
    full = recording.uncaught is not None and "No space left" in recording.uncaught.message
    refused = name in REFUSED and REFUSED[name][0] in recording.output
    killed = recording.ending == "killed" and recording.detail.startswith(reason)
    # What is full fails at once; who goes on regardless is ended.
    assert killed or full or (refused and not held(name, mode)), (recording, recording.output)


def test_who_is_killed_for_memory_before_anybody_looks_is_told_so() -> None:
    limits = {"memory": 200 << 20, "seconds": 8}
    watch = supervisor.Supervisor(0, "", limits, 8, clock.Clock(os.getpid()), cgroup=Starved())
    watch.over = lambda: True  # type: ignore[method-assign]
    watch.end = lambda: signal.SIGKILL  # type: ignore[method-assign]
    server = Server(1, (), None, "test")
    answers: list[dict[str, object]] = []
    server.say = lambda **answer: answers.append(answer)  # type: ignore[method-assign]
    server.running[0] = ("job", watch)
    server.reap()
    assert [one["why"] for one in answers] == ["its processes used more than 200 MiB of memory"]


class Starved:
    """The control group of a run that the kernel has ended a process of."""

    def starved(self) -> bool:
        return True


def test_who_fills_its_folder_is_told_that_it_is_full(attack: Attack) -> None:
    recording = grew("with open('f', 'wb') as file: file.write(bytes(32 << 20))", attack, disk=8 << 20)
    assert "wrote more than" in str(obstacle(recording)), recording


def held(name: str, mode: str) -> bool:
    """Whether the kernel counts what this is about."""
    return sandbox.CGROUP in level(mode).held if "memory" in name else level(mode).memory


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", [name for name in TOO_MUCH if name not in (UNSEEN, *REFUSED)])
def test_what_is_not_too_much_is_done(name: str, attack: Attack) -> None:
    enough = grew(TOO_MUCH[name][0], attack, files=5000, disk=1 << 30, memory=2 << 30)
    assert enough.ending == "finished" and "made" in enough.output, enough


@pytest.mark.parametrize("mode", MODES)
def test_zeros_are_no_memory_that_nobody_sees(mode: str, attack: Attack) -> None:
    found = attack(level(mode), "open('/dev/zero', 'rb')", apart=True)
    assert "PermissionError" in found.output or "Permission denied" in found.output, found.output


PIPELINES = """
import collections, subprocess
said = collections.Counter()
for number in range(300):
    done = subprocess.run("echo a | tr a b | cat", shell=True, text=True, capture_output=True)
    said[done.stdout + done.stderr] += 1
print(dict(said))
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_shell_s_pipelines_never_fail(mode: str, attack: Attack) -> None:
    found = attack(level(mode), PIPELINES, apart=False, limits=replace(LIMITS, seconds=60))
    assert found.output == "{'b\\n': 300}\n", found


@pytest.mark.parametrize(
    "mode",
    [pytest.param(mode, marks=pytest.mark.long) for mode in ("all that there is", "no control groups")],
)
def test_what_a_run_waits_for_itself_is_its_own_time(mode: str, attack: Attack) -> None:
    """All its processes want the same processor, and the first one, which has no clock, waits for it."""
    code = "import signal; signal.setitimer(signal.ITIMER_REAL, 0)\n"
    code += "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nfor number in range(12):\n"
    code += "    if os.fork() == 0: break\nwhile True: pass\n"
    started = time.monotonic()
    recording = attack(level(mode), code, apart=False, limits=replace(LIMITS, seconds=2))
    assert recording.detail == "it did not return in time", recording
    # It may last four times as long where others keep the processors busy.
    assert time.monotonic() - started < 15


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
