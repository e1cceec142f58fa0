"""Nothing outlives gradfix: no process a second later, and no folder that a later run would not clear."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from redteam import LANDLOCK

from gradfix.runtime import sandbox
from gradfix.runtime.sandbox import cgroups, namespaces
from gradfix.system import scratch

pytestmark = pytest.mark.skipif(LANDLOCK is None, reason="there is no Landlock here")

FORKS = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
    signal.signal(number, signal.SIG_IGN)
for number in range(12):
    if os.fork() == 0:
        if number % 2: os.fork()
        break
time.sleep(20)
"""

STARTS = """
import json, sys
from pathlib import Path
from gradfix.verify.jobs import Job, Limits
from gradfix.verify.runner import Runner
from gradfix.verify.sandboxes import choose_sandbox
level = choose_sandbox(sys.executable)._replace(**json.loads(sys.argv[1]))
with Runner(sys.executable, level=level, workers=2) as runner:
    print("started", flush=True)
    runner.run([Job(Path(sys.argv[2]), Path(sys.argv[2]).read_text(), limits=Limits(seconds=25))])
"""

MODES = {
    "here": {},
    "no control groups": {"held": [sandbox.PROCESSES]},
    "nothing but Landlock": {"held": [], "memory": False},
}


def those(of: Path) -> list[int]:
    """The processes whose command names a folder: a server's, its guard's, and all that they have forked."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"--serve" in (line := place.read_bytes()) and os.fsencode(of) in line:
                found.append(int(place.parent.name))
    return found


def until(condition: object, seconds: float) -> bool:
    """Whether something has come about in time."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def groups(guards: list[int]) -> list[Path]:
    """The control groups of servers with these guards."""
    where = cgroups.place()
    folders = where.folders.values() if where is not None else ()
    return [one for folder in folders for pid in guards for one in Path(folder).glob(f"gradfix-{pid}-*")]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("mode", "number"),
    [
        ("here", "SIGKILL"),
        ("here", "SIGTERM"),
        ("here", "SIGINT"),
        ("nothing but Landlock", "SIGKILL"),
        pytest.param("no control groups", "SIGKILL", marks=pytest.mark.long),
    ],
)
def test_nothing_outlives_gradfix(mode: str, number: str, tmp_path: Path) -> None:
    temporary, project = tmp_path / "temporary", tmp_path / "project"
    temporary.mkdir()
    project.mkdir()
    (project / "pyproject.toml").touch()
    (project / "train.py").write_text(FORKS)
    command = [sys.executable, "-c", STARTS, json.dumps(MODES[mode]), str(project / "train.py")]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        # A guard, a server, and what the script has forked.
        assert until(lambda: len(those(temporary)) >= 20, 60), those(temporary)
        started = those(temporary)
        process.send_signal(getattr(signal, number))
        process.wait(20)
        assert until(lambda: not those(temporary), 10), those(temporary)
        assert until(lambda: not list(temporary.iterdir()), 5), list(temporary.rglob("*"))
        assert until(lambda: not groups(started), 5)
    finally:
        process.kill()
        process.wait()


PLANS = """
import os, sys
os.sched_getaffinity = lambda _: {0, 1}
from gradfix.pipeline import driver
driver.WORTH_SERVERS = 2
driver.plan(sys.argv[1:], driver.prepare(sys.argv[1:], driver.RequestedOptions(python=sys.executable)))
"""
FIXTURE = Path(__file__).parents[1] / "fixtures" / "undetached_fake" / "conditional.py"


def test_what_is_planned_by_several_processes_does_not_outlive_gradfix(tmp_path: Path) -> None:
    temporary, project = tmp_path / "temporary", tmp_path / "project"
    temporary.mkdir()
    project.mkdir()
    for name in ("one.py", "other.py"):
        text = FIXTURE.read_text()
        (project / name).write_text(text.replace("import torch", "import torch\nwhile True: pass", 1))
    process = subprocess.Popen(
        [sys.executable, "-c", PLANS, str(project)], env={**os.environ, "TMPDIR": str(temporary)}
    )
    try:
        # Two guards, two servers, and a run of each.
        assert until(lambda: len(those(temporary)) >= 6, 60), those(temporary)
        process.kill()
        process.wait()
        assert until(lambda: not those(temporary), 10), those(temporary)
        assert until(lambda: not list(temporary.iterdir()), 5), list(temporary.rglob("*"))
    finally:
        process.kill()
        process.wait()


def test_what_a_kill_has_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    left, used, others, link = (
        tmp_path / f"gradfix-run-{name}" for name in ("left", "used", "others", "link")
    )
    for one in (left, used):
        one.mkdir(mode=0o700)
        (one / ".lock").touch()
        (one / "deep").mkdir()
    others.mkdir(mode=0o700)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / ".lock").touch()
    link.symlink_to(tmp_path / "kept")
    with (used / ".lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        scratch.sweep(tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == {used.name, others.name, link.name, "kept"}
    assert (tmp_path / "kept" / ".lock").exists()


def test_a_folder_in_use_is_not_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    with scratch.folder() as one:
        with scratch.folder() as other:
            assert one.is_dir() and other.is_dir()
        assert one.is_dir() and not other.exists()
    assert not list(tmp_path.iterdir())


def test_groups_of_the_second_version_are_told_their_limits(tmp_path: Path) -> None:
    """In the kernel's place: files, as a folder of groups has them."""
    where = cgroups.CgroupParent(2, {kind: str(tmp_path) for kind in ("memory", "pids", "cpuacct")})
    group = cgroups.Group(where, "7-1", 1 << 30, 64)
    folder = tmp_path / "gradfix-7-1"
    said = {one.name: one.read_text() for one in folder.iterdir()}
    assert said == {
        "pids.max": "64",
        "memory.max": str((1 << 30) + cgroups.COPIES),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
    }
    (folder / "memory.events").write_text("low 0\nmax 4\noom 1\noom_kill 0\n")
    assert not group.starved()
    (folder / "memory.events").write_text("low 0\nmax 4\noom 1\noom_kill 3\n")
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert group.starved() and group.seconds() == 2.5


def test_groups_whose_server_is_gone_are_cleared(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [f"gradfix-{gone.pid}-1", f"gradfix-{os.getpid()}-1", f"gradfix-{os.getpid()}1-1", "others"]
    for name in names:
        (tmp_path / name).mkdir()
    place = cgroups.CgroupParent(1, {"memory": str(tmp_path), "pids": str(tmp_path)})
    cgroups.sweep(place, f"{os.getpid()}")
    assert "others" in os.listdir(tmp_path) and not {names[0], names[1]} & set(os.listdir(tmp_path))


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can become another user")
def test_the_kernel_holds_an_ordinary_user_s_run_to_its_tasks() -> None:
    """Root's are never counted in this way, so it is tried as somebody else."""
    python = next(
        (one for one in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(one)), None
    )
    if python is None:
        pytest.skip("there is no Python that another user could start")
    text = Path(namespaces.__file__).read_text()
    text += "\nprint(processes_held(), tasks_held())\n"
    done = subprocess.run(
        [python, "-I", "-c", text], user=65534, group=65534, extra_groups=[], capture_output=True, text=True
    )
    if done.stdout.startswith("False"):
        pytest.skip("ordinary users get no namespaces here")
    assert done.stdout == "True True\n", done


ASKING = """
import os, signal, sys, time
from pathlib import Path
from gradfix.project import checkout
from gradfix.system import scratch
from gradfix.bot.git import Git
from gradfix.runtime.sandbox import levels
from gradfix.verify import starting

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

what = sys.argv[1]
if what == "git":
    repository = Git("sha1")
    repository.__enter__()
elif what == "checkout":
    checkout.subprocess.run = killed
    next(checkout.around(os.getcwd())).ask("status")
elif what == "interpreter":
    starting.subprocess.run = killed
    starting.ask(sys.executable, "", {})
else:
    levels.subprocess.run = killed
    with scratch.folder() as folder:
        levels.choose(sys.executable, {}, str(folder))
killed()
"""


@pytest.mark.skipif(scratch.fcntl is None, reason="there are no locks")
@pytest.mark.parametrize("what", ["git", "checkout", "interpreter", "sandbox"])
def test_what_a_killed_process_has_in_the_temporary_folder_goes_with_the_next(
    what: str, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ASKING, what],
        cwd=tmp_path,
        env={
            **os.environ,
            "TMPDIR": str(tmp_path / "temporary"),
            "PYTHONPATH": str(Path(scratch.__file__).parents[2]),
        },
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path / "temporary")) == 1
    scratch.sweep(tmp_path / "temporary")
    assert os.listdir(tmp_path / "temporary") == []
