"""Everything that is run for one file has a budget of time, and who waits is told what is running."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest

from gradfix.runtime.sandbox import levels
from gradfix.system import progress
from gradfix.verify import obstacles, runner, server
from gradfix.verify.jobs import Job
from gradfix.verify.runner import Runner, budget
from gradfix.verify.sandboxes import CannotRun
from gradfix.verify.server import OUT_OF_TIME

JOB = Job(Path("train.py"), "while True: pass", label="before the fix")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(progress, "_stream", None)
    made = Terminal()
    progress.show_on(made)
    return made


def test_nothing_is_started_when_the_time_of_a_file_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Server", lambda *_: pytest.fail("a server was started"))
    with budget(0), Runner(sys.executable, level=levels.UNSANDBOXED) as one:
        one.allow(300)
        (recording,) = one.run([JOB])
        assert obstacles.obstacle(recording) == OUT_OF_TIME


def test_a_budget_within_another_is_no_larger() -> None:
    with budget(5), budget(300):
        one = Runner(sys.executable, level=levels.UNSANDBOXED, total=300)
        assert one._deadline <= time.monotonic() + 5
    one.allow(300)
    assert one._deadline > time.monotonic() + 200


def test_an_import_that_is_not_done_in_time_is_not_one_that_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with pytest.raises(CannotRun, match="the time for this file is up"):
        server.Server(command, tmp_path, {}, tmp_path / "log", time.monotonic() + 0.2)
    command = [sys.executable, "-c", "raise SystemExit('it broke')"]
    with pytest.raises(CannotRun, match="torch cannot be imported: it broke"):
        server.Server(command, tmp_path, {}, tmp_path / "log", time.monotonic() + 60)


def test_who_waits_at_a_terminal_is_told(terminal: Terminal) -> None:
    with budget(60):
        runner._tell_of([(JOB, Path())])
    shown = terminal.getvalue()
    assert "0 s of 60 s  running train.py before the fix" in shown and shown.endswith("\r\x1b[K")


def test_of_several_files_it_is_told_which(terminal: Terminal) -> None:
    progress.of(3)
    progress.one_more()
    with budget(60):
        runner._tell_of([(JOB, Path())])
    progress.of(0)
    assert "2 of 3: running train.py" in terminal.getvalue()


def test_what_stays_is_written_above_the_line_that_is_drawn(terminal: Terminal) -> None:
    with budget(60):
        runner._tell_of([(JOB, Path())])
        progress.say("train.py:3: proved")
    assert "\r\x1b[Ktrain.py:3: proved\n" in terminal.getvalue()


def test_elsewhere_nothing_is_told_at_once(terminal: Terminal) -> None:
    progress.show_on(elsewhere := io.StringIO())
    with budget(60):
        runner._tell_of([(JOB, Path())])
        progress.say("train.py:3: proved")
    runner._tell_of([(JOB, Path())])
    progress.say("train.py:3: proved")
    assert elsewhere.getvalue() == terminal.getvalue() == ""


def test_elsewhere_a_line_is_written_from_time_to_time(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SELDOM", 0.01)
    progress.show_on(elsewhere := io.StringIO())
    with budget(60):
        runner._tell_of([(JOB, Path())])
        until = time.monotonic() + 10
        while "running train.py" not in elsewhere.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        progress.say("train.py:3: proved")
    assert "0 s of 60 s  running train.py before the fix\n" in elsewhere.getvalue()
    assert "train.py:3: proved\n" in elsewhere.getvalue()
