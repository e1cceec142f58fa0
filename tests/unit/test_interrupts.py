"""An interrupt ends the work at the file at hand, wherever it finds it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from cases import FIXTURES
from fakes import ROOT

SOURCE = (FIXTURES / "undetached_fake" / "accelerate.py").read_bytes()
FIXED = (FIXTURES / "undetached_fake" / "accelerate.fixed.py").read_bytes()

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of Unix")


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder.parent), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


EVERYWHERE = """
import os, signal, sys
from gradfix.pipeline import driver
from gradfix.system import interrupts
from gradfix.system.interrupts import Interrupted
from gradfix.pipeline.driver import RequestedOptions

options = driver.prepare(["."], RequestedOptions(unsafe_fixes=True, verify=False))
plan = driver.plan(["."], options)
names = [file.path for file in plan.files]
old, new = ({file.path: getattr(file, which) for file in plan.files} for which in ("before", "after"))
driver.write(plan)  # So that everything has been imported.
for number in interrupts.SIGNALS:
    signal.signal(number, interrupts._arrived)
at = 0
while True:
    for name in names:
        with open(name, "wb") as stream:
            stream.write(old[name])
    interrupts._state = interrupts._State()
    seen = 0

    def line(frame, event, arg):
        global seen
        if frame.f_code.co_filename != "<string>":
            seen += 1
            if seen == at:
                signal.raise_signal(signal.SIGTERM)
        return line

    try:
        sys.settrace(line)
        driver.write(plan)
        ended = None
    except Interrupted as interrupt:
        ended = interrupt.number
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
    if seen < at:
        break
    held = [open(name, "rb").read() for name in names]
    done = [content == new[name] for name, content in zip(names, held)]
    assert ended == signal.SIGTERM, (at, ended)
    assert all(content in (old[name], new[name]) for name, content in zip(names, held)), at
    assert done == sorted(done, reverse=True), (at, done)
    assert interrupts._state.so_far in ("", f"{sum(done)} of {len(names)} files written"), at
    assert sorted(os.listdir(".")) == names, (at, os.listdir("."))
    at += 1 if at < 40 else 7
print(at > 100)
"""
"""Interrupts a write at each of its lines."""


def test_an_interrupt_at_any_line_of_a_write_leaves_whole_files(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for number in range(3):
        (project / f"f{number}.py").write_bytes(SOURCE)
    done = run(EVERYWHERE.replace("at = 0", "at = 1"), project)
    assert (done.stdout, done.stderr) == ("True\n", "")


LOST = """
import gc, signal, sys, time, weakref
from gradfix.system import interrupts

class Thing:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def work():
    if {how!r} == "destructor":
        Thing()
    elif {how!r} == "weak reference":
        thing = type("Other", (), {{}})()
        kept = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing
    elif {how!r} == "collector":
        gc.callbacks.append(lambda *_: signal.raise_signal(signal.SIGINT))
        gc.collect()
        gc.callbacks.clear()
    elif {how!r} == "bare except":
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            pass
    elif {how!r} == "held":
        with interrupts.whole():
            signal.raise_signal(signal.SIGINT)
            print("whole")
    interrupts.say("so far")
    if {ends}:
        raise SystemExit(0)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        pass

interrupts.guarded(work)
"""


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("how", ["destructor", "weak reference", "collector", "bare except", "held"])
def test_an_interrupt_that_gets_nowhere_is_raised_again(tmp_path: Path, how: str, ends: bool) -> None:
    done = run(LOST.format(how=how, ends=ends), tmp_path)
    assert (done.returncode, done.stderr) == (130, "interrupted: so far\n")
    assert done.stdout == ("whole\n" if how == "held" else "")


TIDYING = """
import os, signal, time
from gradfix.system import interrupts

def work():
    try:
        time.sleep(20) if os.fork() else (time.sleep(0.2), os.kill(os.getppid(), signal.SIGHUP), os._exit(0))
    finally:
        try:
            raise LookupError
        except LookupError:
            until = time.monotonic() + 3 * interrupts.AGAIN
            while time.monotonic() < until:
                pass
        print("tidied up", flush=True)

interrupts.guarded(work)
"""


def test_what_tidies_up_is_not_interrupted_again(tmp_path: Path) -> None:
    done = run(TIDYING, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (129, "tidied up\n", "interrupted\n")


SECOND = """
import os, signal, time
from gradfix.system import interrupts

def work():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        print("tidying", flush=True)
        time.sleep(2 * interrupts.PATIENCE)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(20)

interrupts.guarded(work)
"""


def test_the_second_one_ends_it_at_once(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = run(SECOND, tmp_path)
    assert (done.returncode, done.stdout) == (130, "tidying\n")
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize("ignored", [signal.SIGINT, signal.SIGHUP])
def test_what_is_ignored_stays_ignored(tmp_path: Path, ignored: int) -> None:
    code = f"""
    import os, signal
    signal.signal({int(ignored)}, signal.SIG_IGN)
    from gradfix.system import interrupts
    interrupts.guarded(lambda: os.kill(os.getpid(), {int(ignored)}))
    print("on")
    """
    done = run(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_apply_ends_at_the_file_at_hand_and_says_how_far_it_came(
    tmp_path: Path, number: signal.Signals
) -> None:
    """At moments by chance: most come before the first file, so the write is made to take its time.

    The last but one waits for the signal: on a busy machine all could be written before it is sent.
    """
    count = 12
    (tmp_path / "sitecustomize.py").write_text(
        "import os, time\n"
        "count = 0\n"
        "def slow(really):\n"
        "    def replace(source, target, **others):\n"
        "        global count\n"
        "        ours = str(target).endswith('.py')\n"
        "        count += ours\n"
        "        time.sleep(0.05 if ours else 0)\n"
        f"        while count == {count - 1} and not os.path.exists(os.environ['SENT']):\n"
        "            time.sleep(0.01)\n"
        "        really(source, target, **others)\n"
        "        if ours:\n            open(os.environ['STARTED'], 'w').close()\n"
        "    return replace\n"
        "os.replace, os.rename = slow(os.replace), slow(os.rename)\n"
    )
    project = tmp_path / "project"
    project.mkdir()
    chance = random.Random(int(number))
    for round_ in range(2):
        for index in range(count):
            (project / f"f{index:02}.py").write_bytes(SOURCE)
        started, sent = tmp_path / f"started{round_}", tmp_path / f"sent{round_}"
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        process = subprocess.Popen(
            [sys.executable, "-m", "gradfix", "apply", "--no-verify", "--unsafe-fixes"],
            cwd=project,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "STARTED": str(started),
                "SENT": str(sent),
                "XDG_STATE_HOME": str(tmp_path),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: [signal.signal(one, signal.SIG_DFL) for one in (1, 2, 15)],
        )
        until = time.monotonic() + 30
        while not started.exists():
            assert time.monotonic() < until
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.3))
        os.killpg(process.pid, number)
        sent.touch()
        out, error = process.communicate(timeout=30)
        held = [(project / f"f{index:02}.py").read_bytes() for index in range(count)]
        done = sum(one == FIXED for one in held)
        assert sum(one == SOURCE for one in held) == count - done > 0
        assert (process.returncode, out) == (128 + number, b"")
        assert error.decode() == f"interrupted: {done} of {count} files written\n"
        assert len(list(project.iterdir())) == count
