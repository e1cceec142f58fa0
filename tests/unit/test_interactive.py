"""`gradfix apply --interactive`, at a terminal: what is asked, and what becomes of each answer."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes import ROOT, gradfix, standard_codemods

from gradfix.pipeline import driver
from gradfix.pipeline.asking import Answer, Choice, Interactive, Offer
from gradfix.pipeline.options import Options, RequestedOptions
from gradfix.pipeline.results import Attempt

PATIENCE = 20.0
PROMPT = b"quit (q), ? "
TAIL = "# x.backward()\n"


class Session:
    """A process at a terminal of its own."""

    def __init__(self, project: Path, *arguments: str, **environment: str) -> None:
        self.terminal, side = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradfix", "apply", "--codemods", "../codemods", "-i", *arguments],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **environment},
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            preexec_fn=lambda: _have_terminal(side),
        )
        os.close(side)
        self.shown = b""

    def read(self, until: bytes | None = None) -> str:
        """What is shown up to and with ``until``, or up to the end."""
        end = time.monotonic() + PATIENCE
        while until is None or until not in self.shown:
            ready, _, _ = select.select([self.terminal], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"nothing more came: {self.shown.decode()}"
            try:
                data = os.read(self.terminal, 4096)
            except OSError:  # Everybody has closed the terminal.
                data = b""
            if not data:
                break
            self.shown += data
        cut = len(self.shown) if until is None else self.shown.index(until) + len(until)
        part, self.shown = self.shown[:cut], self.shown[cut:]
        return part.decode().replace("\r\n", "\n")

    def answer(self, keys: str) -> str:
        """Wait for the question, and answer it; what was shown with it."""
        shown = self.read(PROMPT)
        os.write(self.terminal, keys.encode())
        return shown

    def end(self) -> tuple[int, str]:
        shown = self.read()
        return self.process.wait(PATIENCE), shown


def _have_terminal(side: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(side, termios.TIOCSCTTY, 0)


Start = Callable[..., Session]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    standard_codemods(tmp_path / "codemods")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def start(project: Path, tmp_path: Path) -> Iterator[Start]:
    sessions: list[Session] = []

    def begin(code: str, *arguments: str, **environment: str) -> Session:
        (project / "train.py").write_text(code + TAIL)
        state = {"XDG_STATE_HOME": str(tmp_path / "state"), **environment}
        sessions.append(Session(project, *(arguments or ["--no-verify", "train.py"]), **state))
        return sessions[-1]

    yield begin
    for session in sessions:
        if session.process.poll() is None:
            session.process.kill()
            session.process.wait()
        os.close(session.terminal)


def lines(project: Path) -> list[str]:
    return (project / "train.py").read_text().removesuffix(TAIL).splitlines()


def test_each_answer_does_what_it_says(project: Path, start: Start) -> None:
    session = start("bad\nbroken\nbad\nhopeless\n")
    first = session.answer("a")
    assert "train.py:1:1: bad-word: " in first
    assert "    1 - bad\n    1 + good\n" in first
    assert first.endswith("accept (a), skip (s), ignore (i), explain (x), edit (e), quit (q), ? ")
    second = session.answer("i")
    assert "broken-word" in second
    assert "train.py:3:1: bad-word: " in session.answer("s")  # The other one on an equal line.
    last = session.read(PROMPT)
    # What was accepted is written at once.
    assert lines(project) == ["good", "broken  # gradfix: ignore[broken-word]", "bad", "hopeless"]
    os.write(session.terminal, b"i")
    assert "hopeless-word" in last and "no automatic fix" in last and "accept (a)" not in last
    code, shown = session.end()
    assert code == 1
    assert shown.endswith("Fixed 1 finding (1 unverified), ignored 2 by comments, 1 left\n")
    assert lines(project) == [
        "good",
        "broken  # gradfix: ignore[broken-word]",
        "bad",
        "hopeless  # gradfix: ignore[hopeless-word]",
    ]


def test_what_is_left_by_nobody_is_0_and_undo_takes_all_of_it_back(
    project: Path, start: Start, tmp_path: Path
) -> None:
    session = start("bad\nbroken\nhopeless\n")
    for key in "aai":
        session.answer(key)
    assert session.end()[0] == 0
    assert gradfix("undo", cwd=project, env={"XDG_STATE_HOME": str(tmp_path / "state")}).returncode == 0
    assert lines(project) == ["bad", "broken", "hopeless"]


def test_explain_and_help_ask_again(project: Path, start: Start) -> None:
    session = start("bad\n")
    session.answer("x")
    assert "The word bad is wrong." in session.answer("?")
    assert "a, y  accept: prove this fix now" in session.answer("!")
    assert "s, n  skip" in session.answer("y\n")  # As who answers by lines does.
    assert session.end()[0] == 0
    assert lines(project) == ["good"]


def test_quit_asks_nothing_more_about_any_file(project: Path, start: Start) -> None:
    (project / "z.py").write_text(f"bad\n{TAIL}")
    session = start("bad\nbad\n", "--no-verify", ".")
    session.answer("a")
    session.answer("q")
    code, shown = session.end()
    assert code == 1 and shown.endswith("Fixed 1 finding (1 unverified), 2 left\n")
    assert lines(project) == ["good", "bad"]
    assert (project / "z.py").read_text() == f"bad\n{TAIL}"


@pytest.mark.parametrize("how", ["key", "signal"])
def test_ctrl_c_loses_nothing(project: Path, start: Start, how: str) -> None:
    session = start("bad\nbroken\n")
    session.answer("a")
    session.read(PROMPT)
    if how == "key":
        os.write(session.terminal, b"\x03")
    else:
        session.process.send_signal(signal.SIGINT)
    code, shown = session.end()
    assert code == 130
    assert "interrupted: 1 file written; `gradfix undo` takes it back" in shown
    assert lines(project) == ["good", "broken"]


def test_the_end_of_the_input_quits(project: Path, start: Start) -> None:
    session = start("bad\n")
    session.answer("\x04")
    assert session.end()[0] == 1
    assert lines(project) == ["bad"]


def editor(folder: Path, program: str) -> str:
    path = folder / "editor.py"
    path.write_text(f"import sys\npath = sys.argv[1]\ntext = open(path).read()\n{program}\n")
    return f"{sys.executable} {path}"


def test_edit_takes_the_file_as_it_was_edited(project: Path, start: Start, tmp_path: Path) -> None:
    edit = editor(tmp_path, "open(path, 'w').write(text.replace('good', 'better'))")
    session = start("bad\n", EDITOR=edit, VISUAL="")
    session.answer("e")
    assert session.end()[0] == 0
    assert lines(project) == ["better"]


@pytest.mark.parametrize(
    ("program", "trouble"),
    [
        ("open(path, 'w').write(text.replace('good', '('))", "what was edited cannot be taken: "),
        ("open(path, 'w').write(text.replace('good', 'bad'))", "what was edited is the file as it is"),
        (
            "open(path, 'w').write(text.replace('good', 'risky'))",
            "what was edited has risky-word at line 1: ",
        ),
        ("sys.exit(1)", "ended with 1, so nothing is taken"),
    ],
)
def test_an_edit_that_mends_nothing_is_asked_about_again(
    project: Path, start: Start, tmp_path: Path, program: str, trouble: str
) -> None:
    session = start("bad\n", EDITOR=editor(tmp_path, program), VISUAL="")
    session.answer("e")
    assert trouble in session.answer("s")
    assert session.end()[0] == 1
    assert lines(project) == ["bad"]


def test_a_file_that_changes_meanwhile_is_left_alone(project: Path, start: Start) -> None:
    session = start("bad\nbad\n")
    session.read(PROMPT)
    (project / "train.py").write_text("something = else_\n")
    os.write(session.terminal, b"a")
    code, shown = session.end()
    assert code == 2 and "has changed" in shown
    assert (project / "train.py").read_text() == "something = else_\n"


def test_what_is_accepted_is_proved_before_the_next_question(project: Path, start: Start) -> None:
    session = start("good = bad = 1\nbad\nraise SystemExit(bad)\n", "train.py")
    session.answer("a")
    second = session.answer("q")
    assert re.match(r"a\n(.*\r.*)?(proved|unverified|refuted): ", second), second
    session.end()
    saved = [json.loads(path.read_text()) for path in (project / "gradfix-evidence").glob("*.json")]
    assert [one["code"] for one in saved] == ["bad-word"]


def test_without_a_terminal_it_is_refused(project: Path) -> None:
    (project / "train.py").write_text(f"bad\n{TAIL}")
    done = gradfix("apply", "-i", "train.py", cwd=project)
    assert done.returncode == 2
    assert done.stderr == (b"error: --interactive asks at a terminal, and standard input or output is none\n")


@pytest.mark.parametrize("option", [["--dry-run"], ["--patch", "x"], ["--output-format", "json"]])
def test_what_contradicts_it_is_refused(project: Path, option: list[str]) -> None:
    done = gradfix("apply", "-i", *option, "train.py", cwd=project)
    assert done.returncode == 2 and b"--interactive" in done.stderr


def test_what_is_edited_must_not_train_a_network_by_the_loss_of_another(tmp_path: Path) -> None:
    """Both steps moved to the end silence the error, and train the discriminator by the other loss too."""
    path = tmp_path / "train.py"
    path.write_bytes((ROOT / "examples" / "workshop" / "glyph_forge.py").read_bytes())
    asked: list[Offer] = []

    def both_at_the_end(text: str) -> str:
        text = text.replace("pictures.detach()", "pictures")
        early = "loss_forged.backward()\n        inspector_optim.step()"
        text = text.replace(early, "loss_forged.backward(retain_graph=True)")
        last = "        forger_optim.step()"
        return text.replace(last, f"        inspector_optim.step()\n{last}")

    def ask(offer: Offer) -> Answer:
        asked.append(offer)
        assert offer.after is not None
        if len(asked) == 1:
            return Answer(Choice.ACCEPT, both_at_the_end(offer.after.text))
        return Answer(Choice.ACCEPT, offer.after.text.replace("pictures.detach()", "pictures.data"))

    def attempt(interactive: Interactive | None) -> Attempt:
        options = driver.prepare([str(path)], RequestedOptions(verify=False, interactive=interactive))
        assert isinstance(options, Options)
        (one,) = driver.plan([str(path)], options).attempts
        return one

    usual = attempt(None)
    own = attempt(Interactive(ask))
    assert [bool(offer.trouble) for offer in asked] == [False, True]
    assert "leaking-loss" in str(asked[1].trouble)
    assert own.after == usual.after.replace("pictures.detach()", "pictures.data") != usual.after
    assert own.fix.claim == usual.fix.claim and usual.fix.claim.feeds
