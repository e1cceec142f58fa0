"""`gradfix check --add-ignores`: comments that silence what is found, wherever they have to stand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fakes import git, gradfix, standard_codemods


@pytest.fixture
def project(tmp_path: Path) -> Path:
    standard_codemods(tmp_path / "codemods")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def check(project: Path, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    done = gradfix("check", "--codemods", "../codemods", *arguments, cwd=project)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def ignored(project: Path, code: str | bytes, *arguments: object) -> bytes:
    """What becomes of ``code``; afterwards it is clean, no comment is idle, and nothing more is added."""
    path = project / "train.py"
    path.write_bytes(code if isinstance(code, bytes) else code.encode())
    done = check(project, "train.py", "--add-ignores", *arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    written = path.read_bytes()
    clean = check(project, "train.py")
    assert (clean.returncode, clean.stderr) == (0, b""), clean.stdout.decode()
    assert check(project, "train.py", "--add-ignores").stdout == b"Nothing to ignore\n"
    assert path.read_bytes() == written
    return written


TAIL = "# x.backward()\n"

WRITTEN = [
    ("bad\n", "bad  # gradfix: ignore[bad-word]\n"),
    ("bad  \n", "bad  # gradfix: ignore[bad-word]\n"),
    ("(bad, risky, bad)\n", "(bad, risky, bad)  # gradfix: ignore[bad-word, risky-word]\n"),
    ("bad  # noqa\n", "bad  # noqa  # gradfix: ignore[bad-word]\n"),
    (
        "(risky, bad)  # gradfix: ignore[risky-word]  # as agreed\n",
        "(risky, bad)  # gradfix: ignore[bad-word, risky-word]  # as agreed\n",
    ),
    (
        "print('# gradfix: ignore[idle]', bad)\n",
        "print('# gradfix: ignore[idle]', bad)  # gradfix: ignore[bad-word]\n",
    ),
    # A comment behind a backslash, or inside a string, would be none.
    ("x = 1 + \\\n    bad\n", "x = 1 + \\\n    bad  # gradfix: ignore[bad-word]\n"),
    ("x = bad + \\\n    1\n", "x = bad + \\\n    1  # gradfix: ignore[bad-word]\n"),
    ("print(bad, '''\n''')\n", "print(bad, '''\n''')  # gradfix: ignore[bad-word]\n"),
    ("print('''\n''', bad)\n", "print('''\n''', bad)  # gradfix: ignore[bad-word]\n"),
    # A comment of the statement is heeded, so it gets the name.
    (
        "print(  # gradfix: ignore[risky-word]\n    bad,\n    risky,\n)\n",
        "print(  # gradfix: ignore[bad-word, risky-word]\n    bad,\n    risky,\n)\n",
    ),
    ("print(\n    bad,\n)\n", "print(\n    bad,  # gradfix: ignore[bad-word]\n)\n"),
    (
        "if bad:\n    risky\n",
        "if bad:  # gradfix: ignore[bad-word]\n    risky  # gradfix: ignore[risky-word]\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), WRITTEN)
def test_the_comment_stands_where_it_is_heeded(project: Path, before: str, after: str) -> None:
    assert ignored(project, before + TAIL).decode() == after + TAIL


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfbad\r\nrisky\r\n", b"\xef\xbb\xbfbad%b\r\nrisky%b\r\n"),
        ("# coding: latin-1\nx = 'é', bad\n".encode("latin-1"), b"# coding: latin-1\nx = '\xe9', bad%b\n"),
        (b"bad\rrisky\n", b"bad%b\rrisky%b\n"),
        (b"bad\n\x0c\nif 1:\n\tbad", b"bad%b\n\x0c\nif 1:\n\tbad%b"),
    ],
)
def test_ends_of_lines_and_encodings_stay(project: Path, before: bytes, after: bytes) -> None:
    head = b"" if before[:1] == b"\xef" or b"coding" in before else TAIL.encode()
    tail = b"" if head else TAIL.encode()
    written = ignored(project, head + before + tail)
    comments = [b"  # gradfix: ignore[bad-word]", b"  # gradfix: ignore[risky-word]"]
    if before.count(b"bad") > 1:
        comments[1] = comments[0]
    assert written == head + after % tuple(comments[: after.count(b"%b")]) + tail


def test_a_reason_stands_behind_the_comment(project: Path) -> None:
    written = ignored(project, "bad\n" + TAIL, "--reason", "until the paper is out")
    assert written.splitlines()[0] == b"bad  # gradfix: ignore[bad-word]  # until the paper is out"


def test_a_reason_that_does_not_fit_the_encoding_is_2(project: Path) -> None:
    path = project / "train.py"
    before = "# coding: ascii\nbad\n" + TAIL
    path.write_text(before)
    done = check(project, "--add-ignores", "--reason", "vorläufig")
    assert done.returncode == 2 and b"does not fit its encoding" in done.stderr
    assert path.read_text() == before


def test_a_finding_that_no_comment_can_silence_is_left_and_said(project: Path) -> None:
    path = project / "train.py"
    path.write_text(f"if bad and \\\n    risky:\n    pass\nrisky\n{TAIL}")
    done = check(project, "--add-ignores")
    assert done.returncode == 1
    assert done.stdout == b"Ignored 2 findings by comments in 1 file\n"
    assert done.stderr == b"warning: train.py:1: bad-word: no comment can silence it there\n"
    assert path.read_text().splitlines()[:2] == ["if bad and \\", "    risky:  # gradfix: ignore[risky-word]"]


def test_what_is_not_reported_gets_no_comment(project: Path) -> None:
    (project / "train.py").write_text(f"bad\nrisky\n{TAIL}")
    assert check(project, "--add-ignores", "--select", "risky-word").returncode == 0
    assert (project / "train.py").read_text().splitlines()[0] == "bad"


def test_undo_takes_the_comments_back(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "state"))
    path = project / "train.py"
    path.write_text(f"bad\n{TAIL}")
    check(project, "--add-ignores")
    assert gradfix("undo", cwd=project).returncode == 0
    assert path.read_text() == f"bad\n{TAIL}"


def test_with_diff_it_is_a_patch(project: Path) -> None:
    path = project / "train.py"
    path.write_text(f"bad\n{TAIL}")
    done = check(project, "--add-ignores", "--diff")
    assert (done.returncode, done.stderr) == (0, b"Would ignore 1 finding by comments in 1 file\n")
    assert path.read_text() == f"bad\n{TAIL}"
    git("init", "-q", cwd=project)
    (project / "ignores.patch").write_bytes(done.stdout)
    git("apply", "ignores.patch", cwd=project)
    assert check(project).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--add-ignores", "--fix"], b"without --fix and --statistics"),
        (["--add-ignores", "--output-format", "json"], b"--output-format is not for it"),
        (["--add-ignores", "-o", "x"], b"not for --add-ignores"),
        (["--add-ignores", "-"], b"no file that --add-ignores could write to"),
        (["--add-ignores", "--reason", "a\nb"], b"--reason is one line of text"),
        (["--reason", "a"], b"behind the comments of --add-ignores"),
    ],
)
def test_what_contradicts_itself_is_refused(project: Path, arguments: list[str], message: bytes) -> None:
    done = check(project, *arguments)
    assert done.returncode == 2 and message in done.stderr
