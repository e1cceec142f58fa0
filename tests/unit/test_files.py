"""Reading and writing files where somebody else may have put something in their place."""

from __future__ import annotations

import fcntl
import itertools
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gradfix.system import files

ROOT_ONLY = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only the superuser gives files away"
)
SOMEBODY = 12345


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)  # What is bound has to be short; the current folder is the test's.


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_fifo(path: Path) -> None:
    fifo(path.with_name("far-end"))
    path.symlink_to("far-end")


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(8 << 30)


def endless(path: Path) -> None:
    # Says that it is empty, and holds megabytes.
    path.symlink_to("/proc/kallsyms")


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (Path.mkdir, "is not a regular file but a folder"),
    "pipe": (fifo, "is not a regular file but a named pipe"),
    "link to a pipe": (link_to_fifo, "is not a regular file but a named pipe"),
    "socket": (listening, "is not a regular file but a socket"),
    "zeros": (zeros, "is not a regular file but a device"),
    "sparse": (sparse, "is too large to be read: 8192.0 MiB"),
    "missing": (lambda path: None, "cannot be read: No such file or directory"),
    "dangling": (
        lambda path: path.symlink_to("nowhere"),
        "cannot be read: a symbolic link to a file that does not exist",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_plain_file_is_refused_at_once_and_named(what: str, tmp_path: Path) -> None:
    make, message = HOSTILE[what]
    path = tmp_path / "a.py"
    make(path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((files.Refused, FileNotFoundError)) as caught:
        files.read(path)
    assert files.describe_error(caught.value) == message
    assert str(caught.value.filename) == str(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 32 << 10


@pytest.mark.skipif(not os.path.exists("/proc/kallsyms"), reason="needs Linux")
def test_what_says_that_it_is_empty_is_read_to_its_end_and_no_further_than_the_cap(tmp_path: Path) -> None:
    assert files.read("/proc/self/status", 1 << 20).startswith(b"Name:")
    endless(tmp_path / "a.py")
    with pytest.raises(files.TooLarge, match=r"more than 4\.0 KiB"):
        files.read("a.py", 4096)


def test_the_cap_is_the_most_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"12345")
    assert files.read("a.py", 5) == b"12345"
    with pytest.raises(files.TooLarge):
        files.read("a.py", 4)


@pytest.mark.parametrize("size", [0, 1, 5, 2_000_000])
def test_what_grows_while_it_is_read_is_read_whole(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was ``size`` when it was opened has three million bytes by now."""
    data = os.urandom(3_000_000)
    (tmp_path / "a.py").write_bytes(data[:size])
    known = os.stat("a.py")
    (tmp_path / "a.py").write_bytes(data)
    monkeypatch.setattr("os.fstat", lambda _: known)
    assert files.read("a.py") == data
    with pytest.raises(files.TooLarge):
        files.read("a.py", 2_999_999)


def test_a_device_is_not_even_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise AssertionError("opened")

    (tmp_path / "a.py").symlink_to("/dev/null")
    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(files.Refused, match="a device"):
        files.read("a.py")


def test_what_is_swapped_for_a_pipe_before_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").touch()
    known = os.stat("a.py")
    (tmp_path / "a.py").unlink()
    fifo(tmp_path / "a.py")
    monkeypatch.setattr("os.stat", lambda *_, **__: known)
    with pytest.raises(files.Refused, match="a named pipe"):
        files.read("a.py")


def test_a_link_can_be_left_unfollowed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"content")
    (tmp_path / "link.py").symlink_to("a.py")
    assert files.read("link.py") == b"content"
    with pytest.raises(files.Refused, match="a symbolic link"):
        files.read("link.py", follow=False)


# ---------------------------------------------------------------------------- replacing


def test_replacing_keeps_the_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 252 + ".py")
    path.write_bytes(b"before")
    path.chmod(0o4751)
    files.replace(path, b"before", b"after")
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o4751
    assert os.listdir(tmp_path) == [path.name]


def test_a_file_with_further_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"before")
    os.link("a.py", "b.py")
    with pytest.raises(files.Refused, match=r"has 2 names \(hard links\)"):
        files.replace("a.py", b"before", b"after")
    assert (tmp_path / "a.py").read_bytes() == b"before"
    assert os.path.samefile("a.py", "b.py")
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]


def attributes(path: Path) -> None:
    try:
        os.setxattr(path, "user.origin", b"somewhere")
    except (AttributeError, OSError):
        pytest.skip("this file system keeps no extended attributes")


def test_what_has_grown_from_nothing_has_changed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"edited")
    with pytest.raises(files.Refused, match="has changed since it was read"):
        files.replace("a.py", b"", b"after")


def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"before")
    attributes(tmp_path / "a.py")
    files.replace("a.py", b"before", b"after")
    assert (tmp_path / "a.py").read_bytes() == b"after"
    assert os.getxattr("a.py", "user.origin") == b"somewhere"


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """Tag, permissions and identity of each, as the kernel stores them."""
    packed = [part.to_bytes(size, "little") for entry in entries for part, size in zip(entry, (2, 2, 4))]
    return (2).to_bytes(4, "little") + b"".join(packed)


NOBODY_ELSE = 0xFFFFFFFF
OWNER, USER, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
SHARED = access_list(
    (OWNER, 6, NOBODY_ELSE),
    (USER, 6, SOMEBODY),
    (GROUP, 0, NOBODY_ELSE),
    (MASK, 6, NOBODY_ELSE),
    (OTHER, 0, NOBODY_ELSE),
)


def test_access_lists_are_kept_and_none_is_gained(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_bytes(b"before")
    (tmp_path / "private.py").write_bytes(b"before")
    (tmp_path / "private.py").chmod(0o600)
    try:
        os.setxattr(tmp_path / "shared.py", "system.posix_acl_access", SHARED)
        os.setxattr(tmp_path, "system.posix_acl_default", SHARED)
    except (AttributeError, OSError):
        pytest.skip("this file system keeps no access lists")
    for name in ("shared.py", "private.py"):
        files.replace(name, b"before", b"after")
    assert os.getxattr("shared.py", "system.posix_acl_access") == SHARED
    assert os.listxattr("private.py") == []
    assert stat.S_IMODE(os.stat("private.py").st_mode) == 0o600


def test_a_file_whose_attributes_cannot_be_kept_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    (tmp_path / "a.py").write_bytes(b"before")
    attributes(tmp_path / "a.py")
    monkeypatch.setattr("os.setxattr", refuse)
    with pytest.raises(
        files.Refused, match=r"attribute user\.origin cannot be kept: Operation not supported"
    ):
        files.replace("a.py", b"before", b"after")
    assert (tmp_path / "a.py").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a.py"]


class Meanwhile:
    """Has something done when the new content has been written, and its place has not been taken yet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
        self.flush, self.act, self.done = os.fsync, act, False
        monkeypatch.setattr("os.fsync", self)

    def __call__(self, descriptor: int) -> None:
        self.flush(descriptor)
        if not self.done:
            self.done = True
            self.act()


def test_what_is_edited_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"before")
    meanwhile = Meanwhile(monkeypatch, lambda: path.write_bytes(b"edited"))
    with pytest.raises(files.Refused, match="has changed since it was read"):
        files.replace(path, b"before", b"after")
    assert meanwhile.done
    assert path.read_bytes() == b"edited"
    assert os.listdir(tmp_path) == ["a.py"]


def test_what_is_saved_anew_meanwhile_is_kept_though_it_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_bytes(b"before")
    (tmp_path / "new").write_bytes(b"before")
    Meanwhile(monkeypatch, lambda: os.replace("new", "a.py"))
    inode = os.stat("new").st_ino
    with pytest.raises(files.Refused, match="has changed since it was read"):
        files.replace("a.py", b"before", b"after")
    assert os.stat("a.py").st_ino == inode


@ROOT_ONLY
def test_nothing_of_ours_is_handed_over_to_who_swaps_files_for_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who may write to the folder puts a link, or a name, of our file in the place of each file."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "a.py").write_bytes(b"before")
    for theirs in (folder, folder / "a.py"):
        os.chown(theirs, SOMEBODY, SOMEBODY)
    ours = tmp_path / "ours"
    ours.write_bytes(b"before")
    ours.chmod(0o600)

    def swap() -> None:
        for name in os.listdir(folder):
            (folder / name).unlink()
            (folder / name).symlink_to(ours)

    Meanwhile(monkeypatch, swap)
    with pytest.raises(files.Refused, match="has changed since it was read"):
        files.replace(folder / "a.py", b"before", b"after")
    status = ours.stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode), status.st_nlink) == (os.getuid(), 0o600, 1)
    assert ours.read_bytes() == b"before"


@ROOT_ONLY
def test_a_folder_that_is_swapped_for_another_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_bytes(b"before")

    def swap() -> None:
        (tmp_path / "theirs").rename(tmp_path / "moved")
        (tmp_path / "theirs").symlink_to("ours")

    Meanwhile(monkeypatch, swap)
    files.replace(tmp_path / "theirs" / "a.py", b"before", b"after")
    assert (tmp_path / "moved" / "a.py").read_bytes() == b"after"
    assert (tmp_path / "ours" / "a.py").read_bytes() == b"before"


@ROOT_ONLY
def test_the_superuser_keeps_the_owner(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"before")
    os.chown("a.py", SOMEBODY, SOMEBODY + 1)
    files.replace("a.py", b"before", b"after")
    status = os.stat("a.py")
    assert (status.st_uid, status.st_gid) == (SOMEBODY, SOMEBODY + 1)


@ROOT_ONLY
def test_where_the_owner_cannot_be_kept_nobody_gains_a_right(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "a.py").write_bytes(b"before")
    os.chown(folder / "a.py", 0, SOMEBODY + 1)
    for path, mode in ((tmp_path, 0o755), (folder, 0o777), (folder / "a.py", 0o6676)):
        path.chmod(mode)
    child = os.fork()
    if not child:
        try:
            os.chdir(folder)
            os.setgroups([])
            os.setgid(SOMEBODY)
            os.setuid(SOMEBODY)
            with files.Folder(os.curdir) as opened:
                opened.replace("a.py", b"before", b"after")
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    status = (folder / "a.py").stat()
    assert (status.st_uid, status.st_gid) == (SOMEBODY, SOMEBODY)
    assert stat.S_IMODE(status.st_mode) == 0o666  # neither set-user-ID, nor a right for another group


# ---------------------------------------------------------------------------- files of our own


def test_saving_makes_folders_and_keeps_the_mode_of_what_is_there(tmp_path: Path) -> None:
    files.save("a/b/plan.json", b"{}")
    assert (tmp_path / "a" / "b" / "plan.json").read_bytes() == b"{}"
    (tmp_path / "a" / "b" / "plan.json").chmod(0o640)
    files.save("a/b/plan.json", b"[]")
    assert (tmp_path / "a" / "b" / "plan.json").read_bytes() == b"[]"
    assert stat.S_IMODE(os.stat("a/b/plan.json").st_mode) == 0o640
    assert os.listdir("a/b") == ["plan.json"]


def test_saving_breaks_a_hard_link_and_leaves_the_other_file(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"precious")
    os.link("mine", "plan.json")
    files.save("plan.json", b"{}")
    assert (tmp_path / "mine").read_bytes() == b"precious"


@pytest.mark.parametrize("path", ["plan.json", "{}/plan.json"], ids=["relative", "absolute"])
def test_a_link_in_the_place_of_an_output_is_named_and_not_followed(path: str, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"precious")
    (tmp_path / "plan.json").symlink_to("mine")
    with pytest.raises(files.Refused, match=r"plan\.json is a symbolic link"):
        files.save(path.format(tmp_path), b"{}")
    assert (tmp_path / "mine").read_bytes() == b"precious"


def test_a_link_among_the_folders_of_an_output_is_not_followed(tmp_path: Path) -> None:
    for name in ("home", "clone/sub", "clone/.git", "here"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "clone" / "out").symlink_to(tmp_path / "home")
    (tmp_path / "here" / "out").symlink_to(tmp_path / "home")
    for cwd, path in (
        ("clone", "out/x/plan.json"),
        ("clone", "out/plan.json"),
        ("clone/sub", "../out/plan.json"),
        ("here", "out/plan.json"),
        ("here", str(tmp_path / "clone" / "out" / "plan.json")),
    ):
        os.chdir(tmp_path / cwd)
        with pytest.raises(files.Refused, match="out is a symbolic link"):
            files.save(path, b"{}")
    assert os.listdir(tmp_path / "home") == []


def test_links_that_are_the_users_own_are_followed(tmp_path: Path) -> None:
    for name in ("disk/clone/.git", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home").symlink_to("disk")
    os.chdir(tmp_path / "elsewhere")
    files.save(tmp_path / "home" / "clone" / "plan.json", b"{}")
    assert (tmp_path / "disk" / "clone" / "plan.json").read_bytes() == b"{}"


def test_what_is_no_plain_file_is_not_replaced_by_an_output(tmp_path: Path) -> None:
    fifo(tmp_path / "plan.json")
    with pytest.raises(files.Refused, match="a named pipe"):
        files.save("plan.json", b"{}")
    assert stat.S_ISFIFO(os.stat("plan.json").st_mode)


def test_where_folders_cannot_be_held_open_paths_have_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BY_DESCRIPTOR", False)
    files.save("a/b.py", b"before")
    files.replace("a/b.py", b"before", b"after")
    assert (tmp_path / "a" / "b.py").read_bytes() == b"after"
    assert os.listdir("a") == ["b.py"]
    with pytest.raises(files.Refused, match="has changed"):
        files.replace("a/b.py", b"before", b"other")
    with files.folder_for("a") as folder:
        assert folder.names() == ["b.py"]
        assert folder.read("b.py") == b"after"
        folder.remove("b.py")
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(files.Refused, match="link is a symbolic link"):
        files.save("link/b.py", b"before")
    assert os.listdir("a") == []


def test_a_read_only_output_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b"precious")
    (tmp_path / "plan.json").chmod(0o444)
    with pytest.raises(files.Refused, match="it is read-only"):
        files.save("plan.json", b"{}")
    assert (tmp_path / "plan.json").read_bytes() == b"precious"


def test_streams_are_written_to_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    files.save(f"/dev/fd/{writing}", b"{}")
    os.close(writing)
    assert os.read(reading, 10) == b"{}"
    os.close(reading)
    files.save("/dev/stdout", b"out")
    files.save("/dev/stderr", b"err")
    files.save("/dev/null", b"nothing")
    assert capfd.readouterr() == ("out", "err")
    with pytest.raises(OSError, match="Bad file descriptor"):
        files.save("/dev/fd/987654", b"{}")


# ---------------------------------------------------------------------------- what killed processes leave

KILLED = """
import os, signal, sys
from gradfix.system import files

if sys.argv[1] == "named":
    del os.O_TMPFILE
at = 0

def trace(frame, event, arg):
    global at
    if frame.f_code.co_filename == files.__file__:
        at += 1
        if at == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
    return trace

sys.settrace(trace)
files.replace("a.py", b"before", b"after")
sys.settrace(None)
"""
"""Replaces a file, and is killed at the line of :mod:`gradfix.system.files` with this number."""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs Linux")
@pytest.mark.parametrize("how", ["unnamed", "named"])
def test_what_a_killed_process_leaves_the_next_one_removes(how: str, tmp_path: Path) -> None:
    left = 0
    for at in itertools.count(1, 9):
        (tmp_path / "a.py").write_bytes(b"before")
        done = subprocess.run([sys.executable, "-c", KILLED, how, str(at)], cwd=tmp_path, check=False)
        assert (tmp_path / "a.py").read_bytes() in (b"before", b"after")
        left += len(os.listdir()) - 1
        files.replace("a.py", (tmp_path / "a.py").read_bytes(), b"again")
        assert os.listdir() == ["a.py"]
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    # In the usual way there is hardly a moment in which anything could be left.
    assert left <= 5 if how == "unnamed" else left > 5


def leftover(name: str, data: bytes = b"half") -> str:
    """A file with a name as if this process were writing it, or one with another number."""
    Path(name).write_bytes(data)
    number = os.stat(name).st_ino
    left = f".gradfix-{number:x}-0123456789abcdef.tmp"
    os.rename(name, left)
    return left


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs Linux")
def test_nothing_is_removed_that_gradfix_has_not_left() -> None:
    ours = leftover("x")
    copy = f"{ours[:-5]}0.tmp"  # As one that came with a clone.
    Path(copy).write_bytes(b"half")
    linked, held = leftover("y"), leftover("z")
    os.link(linked, "mine")
    for name in (".gradfix-1-.tmp", ".gradfix-0-0123456789abcdef.tmp", f"{ours}~"):
        Path(name).write_bytes(b"mine")
    os.symlink("mine", f".gradfix-{os.lstat('mine').st_ino:x}-1123456789abcdef.tmp")
    os.mkdir("folder")
    os.rename("folder", f".gradfix-{os.stat('folder').st_ino:x}-2123456789abcdef.tmp")
    there = set(os.listdir())
    with open(held, "rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        files.save("new.py", b"new")
        assert set(os.listdir()) == there - {ours} | {"new.py"}
    files.save("new.py", b"new")
    assert set(os.listdir()) == there - {ours, held} | {"new.py"}


def test_where_a_file_without_a_name_gets_none_a_named_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    Path("a.py").write_bytes(b"before")
    files.replace("a.py", b"before", b"after")
    assert (Path("a.py").read_bytes(), os.listdir()) == (b"after", ["a.py"])
