"""``gradfix undo``: the last apply is taken back, whole or as far as nobody has changed its files since."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes import git, standard_codemods
from typer.testing import CliRunner, Result

from gradfix.cli.commands import app
from gradfix.core.codemod import Claim, Effect, Finding, Fix
from gradfix.core.span import Span
from gradfix.pipeline import driver, journal
from gradfix.pipeline.results import Attempt, FilePlan, Outcome, Plan
from gradfix.project import configuration
from gradfix.project.source import Problem

SPAN = Span(1, 0, 1, 1)
FIX = Fix("do it", Effect.REPAIRS, (), Claim())
ATTEMPT = Attempt(Finding("some-mistake", "", SPAN, (), (FIX,)), FIX, "", "", Outcome.UNVERIFIED)
BEFORE, AFTER = b"bad\r\n\xe9\x00", b"good\r\n\xe9\x00"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's state; the current one is a repository."""
    (tmp_path / "project").mkdir()
    (tmp_path / "state").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    git("init", "-q", ".", cwd=tmp_path / "project")
    return tmp_path / "state" / "gradfix" / "undo"


def apply(*paths: str | Path, before: bytes = BEFORE, after: bytes = AFTER) -> Plan:
    """Write ``after`` to each of ``paths``, as the command of this name does."""
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(before)
    files = tuple(FilePlan(str(path), before, after, "", (ATTEMPT,)) for path in paths)
    return driver.write(Plan(files, (), len(files), ()))


def undo(*options: str) -> Result:
    done = CliRunner().invoke(app, ["undo", *options])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def contents(*paths: str | Path) -> list[bytes]:
    return [Path(path).read_bytes() for path in paths]


def test_what_apply_has_written_is_taken_back_byte_for_byte_with_its_mode() -> None:
    Path("a.py").write_bytes(BEFORE)
    Path("a.py").chmod(0o751)
    assert apply("a.py", "inner/b.py").exit_code == 0
    assert contents("a.py", "inner/b.py") == [AFTER, AFTER]
    done = undo()
    assert done.exit_code == 0
    assert done.stdout.startswith("a.py\ninner/b.py\nTook back 2 files of the apply of ")
    assert contents("a.py", "inner/b.py") == [BEFORE, BEFORE]
    assert stat.S_IMODE(os.stat("a.py").st_mode) == 0o751
    assert sorted(os.listdir()) == [".git", "a.py", "inner"]
    assert undo().exit_code == 2  # It is taken back once.


def test_one_apply_after_the_other_is_taken_back() -> None:
    apply("a.py", before=b"1", after=b"2")
    apply("a.py", before=b"2", after=b"3")
    assert [undo().exit_code, *contents("a.py")] == [0, b"2"]
    assert [undo().exit_code, *contents("a.py")] == [0, b"1"]
    done = undo()
    assert (done.exit_code, done.stderr) == (2, "error: there is nothing to take back in this project\n")


def test_it_is_found_from_the_whole_repository_and_from_where_apply_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply("inner/b.py")
    monkeypatch.chdir("inner")
    assert undo().stdout.startswith("b.py\n")
    monkeypatch.chdir(tmp_path)
    apply("project/inner/b.py", after=b"other")
    assert undo().stdout.startswith("project/inner/b.py\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    apply(tmp_path / "project" / "inner" / "b.py", after=b"other")
    assert undo().stdout.startswith(f"{tmp_path}/project/inner/b.py\n")


def test_another_project_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apply("a.py")
    for name in ("project2", "other"):
        (tmp_path / name).mkdir()
        git("init", "-q", ".", cwd=tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        assert "nothing to take back" in undo().stderr
    assert contents(tmp_path / "project" / "a.py") == [AFTER]


def test_a_dry_run_prints_the_patch_and_writes_nothing(state: Path) -> None:
    apply("a.py")
    git("add", ".", cwd=Path())

    def seen() -> dict[Path, tuple[int, ...]]:
        found = {path: path.lstat() for path in [*Path().rglob("*"), *state.rglob("*")]}
        return {path: (one.st_mode, one.st_ino, one.st_size, one.st_ctime_ns) for path, one in found.items()}

    before = seen()
    done = undo("--dry-run")
    assert done.exit_code == 0
    assert done.stderr.startswith("a.py\nWould take back 1 file of the apply of ")
    assert seen() == before
    Path("undo.patch").write_bytes(done.stdout_bytes)
    git("apply", "undo.patch", cwd=Path())
    assert contents("a.py") == [BEFORE]


def replaced_by_a_link() -> None:
    Path("mine").write_bytes(AFTER)
    Path("b.py").unlink()
    Path("b.py").symlink_to("mine")


CHANGED = {
    "edited": (lambda: Path("b.py").write_bytes(b"edited"), "it has changed since `apply` wrote it"),
    "removed": (lambda: Path("b.py").unlink(), "was not taken back: No such file"),
    "a link": (replaced_by_a_link, "is not a regular file but a symbolic link"),
    "given another name": (lambda: os.link("b.py", "c.py"), "hard links"),
    "read-only": (lambda: Path("b.py").chmod(0o444), "it is read-only"),
}


@pytest.mark.parametrize("how", CHANGED)
def test_a_file_that_has_changed_is_left_and_named_and_the_others_are_taken_back(how: str) -> None:
    change, message = CHANGED[how]
    apply("a.py", "b.py", "d.py")
    change()
    left = Path("b.py").read_bytes() if Path("b.py").exists() else None
    done = undo()
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: b.py: io-error: ")
    assert message in done.stderr
    assert "Took back 2 files" in done.stdout
    assert contents("a.py", "d.py") == [BEFORE, BEFORE]
    assert (Path("b.py").read_bytes() if Path("b.py").exists() else None) == left

    # Its old content is not lost.
    for name in ("b.py", "c.py"):
        Path(name).unlink(missing_ok=True)
    Path("b.py").write_bytes(AFTER)
    assert undo().exit_code == 0
    assert contents("b.py") == [BEFORE]


def test_a_folder_that_has_become_a_link_is_not_written_through(tmp_path: Path) -> None:
    apply("inner/b.py", "inner/deep/c.py", "d.py")
    Path("inner").rename(tmp_path / "elsewhere")
    Path("inner").symlink_to(tmp_path / "elsewhere")
    done = undo()
    assert (done.exit_code, done.stderr.count("\n")) == (2, 2)
    assert (
        f"error: inner/b.py: io-error: is not where it was: {Path('inner').absolute()} is a " in done.stderr
    )
    assert "Took back 1 file" in done.stdout
    assert contents("d.py", "inner/b.py", "inner/deep/c.py") == [BEFORE, AFTER, AFTER]

    # Its old content is not lost.
    Path("inner").unlink()
    (tmp_path / "elsewhere").rename("inner")
    assert undo().exit_code == 0
    assert contents("inner/b.py", "inner/deep/c.py") == [BEFORE, BEFORE]


@pytest.mark.parametrize("written", [0, 1, 2])
def test_an_apply_that_was_killed_can_be_taken_back(written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    replace = configuration.replace
    left: Iterator[int] = iter(range(written))

    def replace_until(path: str, before: bytes, after: bytes) -> Problem | None:
        if next(left, None) is None:
            raise Killed
        return replace(path, before, after)

    monkeypatch.setattr(configuration, "replace", replace_until)
    with pytest.raises(Killed):
        apply("a.py", "b.py", "c.py")
    assert contents("a.py", "b.py", "c.py") == [AFTER] * written + [BEFORE] * (3 - written)
    done = undo()
    assert done.exit_code == 0
    assert (f"Took back {written} file" in done.stdout) == bool(written)
    assert contents("a.py", "b.py", "c.py") == [BEFORE] * 3


def test_an_undo_that_was_killed_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    apply("a.py", "b.py")
    Path("a.py").write_bytes(BEFORE)
    done = undo()
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "b.py")


def test_what_apply_could_not_write_is_not_told_of() -> None:
    Path("a.py").write_bytes(b"edited meanwhile")
    assert apply("a.py", "b.py").exit_code == 2
    Path("a.py").write_bytes(b"edited again")
    assert undo().exit_code == 0
    assert contents("a.py", "b.py") == [b"edited again", BEFORE]


def test_an_apply_that_wrote_nothing_leaves_the_one_before_it(state: Path) -> None:
    apply("a.py")
    Path("b.py").write_bytes(b"edited meanwhile")
    apply("b.py")
    assert len(os.listdir(state)) == 1
    assert undo().stdout.startswith("a.py\n")


def test_the_journal_is_the_users_alone(state: Path) -> None:
    apply("a.py")
    (file,) = state.iterdir()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (state.parent, state, file)]
    assert modes == [0o700, 0o700, 0o600]


def readable(state: Path) -> None:
    state.mkdir(parents=True)
    state.chmod(0o755)


def linked(state: Path) -> None:
    (state.parents[2] / "elsewhere").mkdir()
    state.parent.symlink_to(state.parents[2] / "elsewhere")


def a_file(state: Path) -> None:
    state.parent.touch()


@pytest.mark.parametrize("spoil", [readable, linked, a_file])
def test_without_a_place_for_the_journal_apply_goes_on_and_says_so(
    spoil: Callable[[Path], None], state: Path, tmp_path: Path
) -> None:
    spoil(state)
    done = apply("a.py")
    assert contents("a.py") == [AFTER]
    assert done.unkept.startswith("cannot be ")
    assert done.exit_code == 0
    assert not (tmp_path / "elsewhere").exists() or os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only the superuser gives files away"
)
def test_the_superuser_makes_nothing_in_somebody_elses_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 12345, 12345)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert "belongs to somebody else" in apply("a.py").unkept
    assert os.listdir(tmp_path / "home") == []


def test_without_another_word_the_state_is_below_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    apply("a.py")
    assert len(os.listdir(tmp_path / "home" / ".local" / "state" / "gradfix" / "undo")) == 1
    assert not Path("relative").exists()


def test_the_oldest_journals_go(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST", 3)
    for number in range(5):
        apply("a.py", before=b"%d" % number, after=b"%d" % (number + 1))
    assert len(os.listdir(state)) == 3
    assert [undo().exit_code for _ in range(4)] == [0, 0, 0, 2]
    assert contents("a.py") == [b"2"]


def test_the_journals_have_a_size(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LARGEST", 1000)
    for number in range(5):
        apply("a.py", before=b"%d" % number, after=b"%d" % (number + 1))
    assert sum(path.stat().st_size for path in state.iterdir()) <= 1000
    big = os.urandom(2000)
    done = apply("b.py", before=big)
    assert done.unkept == "is too large to be kept: the old files have 0 MiB"
    assert contents("b.py") == [AFTER]


def test_a_journal_that_cannot_be_understood_is_passed_over(state: Path) -> None:
    apply("a.py")
    for name, data in (("9.json", b"{"), ("8.json", b'{"format": 2}'), ("7.json", b"[]"), ("6.txt", b"")):
        (state / name).write_bytes(data)
    (state / "5.json").write_bytes(b"[" * 100_000)
    (whole,) = (json.loads(file.read_text()) for file in state.iterdir() if len(file.name) > 10)
    for number, change in enumerate(
        ({"time": 1e999}, {"files": [{**whole["files"][0], "path": None}]}, {"files": [{"path": "a.py"}]})
    ):
        (state / f"4{number}.json").write_text(json.dumps({**whole, **change}))
    assert undo().exit_code == 0
    assert contents("a.py") == [BEFORE]


def test_what_is_not_written_is_not_kept(state: Path, tmp_path: Path) -> None:
    Path("a.py").write_text("bad\nx.backward()\n")
    codemods = standard_codemods(tmp_path / "codemods")
    for options, kept in ((["--dry-run"], False), (["--patch", "x.patch"], False), ([], True)):
        done = CliRunner().invoke(app, ["apply", "--no-verify", "--codemods", codemods, "a.py", *options])
        assert "1 finding in 1 file" in done.output
        assert state.exists() == kept
    assert undo().exit_code == 0
    assert contents("a.py") == [b"bad\nx.backward()\n"]
