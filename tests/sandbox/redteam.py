"""A place to attack: a fake home with secrets, a project in it, servers that listen, a process to harm."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gradfix.runtime import sandbox
from gradfix.runtime.sandbox import kernel, levels
from gradfix.verify import starting
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.recording.records import Recording
from gradfix.verify.runner import Runner
from gradfix.verify.sandboxes import CannotRun, choose_sandbox

SECRET = "open-sesame-4711"
LIMITS = Limits(seconds=8, memory=1 << 30, file=64 << 20, disk=128 << 20, files=2000, tasks=48)

LEVEL: levels.Level | None = None
WHY = os.environ.get("GRADFIX_TESTS_WITHOUT", "it is not wanted")
try:
    level = choose_sandbox(sys.executable)
    LEVEL = None if level is levels.UNSANDBOXED else level
except CannotRun as error:
    WHY = str(error)

LANDLOCK = LEVEL if LEVEL is not None and LEVEL.name == sandbox.LANDLOCK else None


def bubblewrap() -> levels.Level | str:
    """The level that a machine without Landlock has, or why it is not to be had here."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux"
    real = levels._asked

    def without_landlock(
        command: list[str], environment: dict[str, str], within: str | None = None
    ) -> dict[str, object]:
        answer = real(command, environment, within)
        return {**answer, "landlock": 0} if command[0] == sys.executable else answer

    levels._asked = without_landlock
    try:
        return levels.choose(sys.executable, starting.environment())
    except kernel.SandboxError as error:
        return str(error)
    finally:
        levels._asked = real


class Listener:
    """A server on a loopback address or a unix socket that counts who comes."""

    def __init__(self, made: socket.socket, address: object) -> None:
        made.bind(address)  # type: ignore[arg-type]
        self.socket = made
        self.address = made.getsockname()
        self.visits = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        if self.socket.type == socket.SOCK_STREAM:
            self.socket.listen()
        while True:
            try:
                if self.socket.type == socket.SOCK_STREAM:
                    self.socket.accept()[0].close()
                else:
                    self.socket.recv(100)
            except OSError:
                return
            self.visits += 1


@dataclass
class Yard:
    """Everything that an attack may aim at, and what tells from outside whether it got there."""

    home: Path
    project: Path
    outside: Path
    listeners: dict[str, Listener]
    victim: subprocess.Popen[bytes]
    values: dict[str, object] = field(default_factory=dict)

    @property
    def script(self) -> Path:
        return self.project / "train.py"


Attack = Callable[..., Recording]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home folder, the one that the interpreter takes for the user's."""
    made = tmp_path_factory.mktemp("home")
    for name in (
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".netrc",
        ".config/gh/hosts.yml",
        "documents/diary.txt",
    ):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(SECRET)
    patch = pytest.MonkeyPatch()
    patch.setenv("HOME", str(made))
    patch.setenv("MY_API_TOKEN", SECRET)
    patch.setenv("DATABASE", SECRET)
    yield made
    patch.undo()


@pytest.fixture
def yard(home: Path, tmp_path: Path) -> Iterator[Yard]:
    project = home / "project"
    shutil.rmtree(project, ignore_errors=True)
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    for name in (".git/config", ".env", "credentials.json", "server.key"):
        (project / name).write_text(SECRET)
    (project / "data.txt").write_text("some data\n")
    (project / "other/deep").mkdir(parents=True)
    (project / "other/deep/.env").write_text(SECRET)
    (project / "other/deep/more.txt").write_text("more data\n")
    (project / "src" / "more.txt").write_text("more data\n")
    (project / "train.py").write_text("print('the original')\n")
    (project / "stolen.txt").symlink_to(home / "documents" / "diary.txt")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("precious")
    # A path to a unix socket holds about a hundred characters.
    place = Path("/tmp") / f"gf-{os.getpid()}-{time.monotonic_ns() % 10**9}.sock"
    listeners = {
        "tcp": Listener(socket.socket(socket.AF_INET), ("127.0.0.1", 0)),
        "udp": Listener(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", 0)),
        "unix": Listener(socket.socket(socket.AF_UNIX), str(place)),
        "datagram": Listener(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), f"{place}d"),
    }
    if sys.platform == "linux":
        listeners["abstract"] = Listener(socket.socket(socket.AF_UNIX), f"\0gradfix-{time.monotonic_ns()}")
    victim = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", SECRET], env={**os.environ, "PRIVATE": SECRET}
    )
    made = Yard(home, project, outside, listeners, victim)
    made.values = {
        "HOME": str(home),
        "PROJECT": str(project),
        "OUTSIDE": str(outside),
        "VICTIM": victim.pid,
        **{name.upper(): listener.address for name, listener in listeners.items()},
    }
    yield made
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    for listener in listeners.values():
        listener.socket.close()
    place.unlink(missing_ok=True)
    Path(f"{place}d").unlink(missing_ok=True)


class Runners:
    """One runner for each level; the import of torch is the dearest part of a test."""

    def __init__(self) -> None:
        self.made: dict[tuple[object, ...], Runner] = {}

    def __call__(self, level: levels.Level) -> Runner:
        key = (level.name, level.memory, level.newest, level.held)
        if key not in self.made:
            self.made[key] = Runner(sys.executable, level=level, workers=1).__enter__()
        return self.made[key]


@pytest.fixture(scope="session")
def runners(home: Path) -> Iterator[Runners]:
    made = Runners()
    yield made
    for runner in made.made.values():
        runner.__exit__(None, None, None)


PAYLOAD = """
import subprocess, sys
import torch
weight = torch.ones(1, requires_grad=True)
(weight * 2).sum().backward()
done = subprocess.run([sys.executable, "-S", "-c", {payload!r}], capture_output=True, text=True)
print(done.stdout[-3000:], done.stderr[-1500:])
"""


@pytest.fixture
def attack(yard: Yard, runners: Runners) -> Attack:
    """Run hostile code at a level, by the way that user's code is run.

    In a Python process that the script starts (``apart``), where no hook of the probe holds it, only
    the kernel; or else in the run's own process.
    """

    def run(
        level: levels.Level,
        code: str,
        *,
        apart: bool = True,
        limits: Limits = LIMITS,
        path: Path | None = None,
    ) -> Recording:
        given = "import ctypes, os, socket, struct, sys, time\n"
        given += "".join(f"{name} = {value!r}\n" for name, value in yard.values.items())
        source = PAYLOAD.format(payload=given + code) if apart else given + code
        runner = runners(level)
        runner._deadline = time.monotonic() + 60
        # Never answered from what an equal attack has brought about before.
        (recording,) = runner.run(
            [Job(path or yard.script, f"{source}\n# {time.monotonic_ns()}", limits=limits)]
        )
        return recording

    return run
