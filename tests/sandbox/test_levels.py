"""Which sandbox is chosen, what is said where there is none, and what each of them is told."""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from redteam import LEVEL, WHY, Yard

from gradfix.core.codemod import Claim, Effect
from gradfix.verify import runner, sandbox

pytest_plugins = ("redteam",)

NONE = "no sandbox here"


@pytest.fixture(autouse=True)
def _nothing_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(runner.ALLOW, raising=False)


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    runner._sandbox.cache_clear()
    yield
    runner._sandbox.cache_clear()


def pretend(
    monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any], programs: bool = False
) -> list[list[str]]:
    """Let the processes that are asked what there is answer this; what was asked is returned."""
    asked: list[list[str]] = []
    waiting = list(answers)

    def answer(command: list[str], *_: object) -> dict[str, Any]:
        asked.append(command)
        return waiting.pop(0)

    monkeypatch.setattr(sandbox, "_asked", answer)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if programs else None)
    return asked


NO_LANDLOCK = {"landlock": 0, "why": "Landlock: Function not implemented", "files": [["/usr"], []]}


def test_landlock_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"landlock": 4, "memory": False, "why": ""}, programs=True)
    found = runner.choose_sandbox("python")
    assert str(found) == "landlock+seccomp (Landlock ABI 4, no shared memory)"
    assert not found.apart and not found.memory


@pytest.mark.parametrize(("platform", "program"), [("linux", "bwrap"), ("darwin", "sandbox-exec")])
def test_a_program_stands_in_where_a_trial_shows_that_it_works(
    platform: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    asked = pretend(monkeypatch, NO_LANDLOCK, {"why": None}, programs=True)
    found = runner.choose_sandbox("python")
    assert found.apart and str(found) == {"bwrap": "bubblewrap+seccomp"}.get(program, program)
    assert asked[1][0] == program and "--inside" in asked[1]
    pretend(monkeypatch, NO_LANDLOCK, {"why": "the network can still be reached"}, programs=True)
    runner._sandbox.cache_clear()
    with pytest.raises(runner.CannotRun, match=f"{program}: the network can still be reached"):
        runner.choose_sandbox("python")


def test_nothing_is_run_where_there_is_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, *[NO_LANDLOCK] * 2)
    monkeypatch.setattr(runner, "choose_interpreter", lambda *_: runner.Interpreter(sys.executable, "this"))
    started: list[Any] = []
    monkeypatch.setattr(runner.subprocess, "Popen", lambda *args, **kwargs: started.append(args))
    evidence = runner.verify_rewrite(
        tmp_path / "a.py", "", "", Claim(), Effect.REPAIRS, python=sys.executable
    )
    assert (evidence.outcome, evidence.sandbox) == ("not run", "none: nothing was run")
    assert evidence.reason == (
        "no sandbox here (Landlock: Function not implemented; there is no bwrap); "
        "--allow-unsandboxed runs it with resource limits only"
    ).replace("bwrap", "sandbox-exec" if sys.platform == "darwin" else "bwrap")
    assert started == []
    with pytest.raises(runner.CannotRun, match=NONE):
        runner.run_once(tmp_path / "a.py", "", python=sys.executable)


def test_it_is_run_where_that_is_allowed_and_the_evidence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_asked", lambda *_: NO_LANDLOCK)
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    monkeypatch.setattr(runner, "choose_interpreter", lambda *_: runner.Interpreter(sys.executable, "this"))
    code = "import torch\nw = torch.ones(1, requires_grad=True)\n(w * 2).sum().backward()\n"
    evidence = runner.verify_rewrite(
        tmp_path / "a.py", code, code, Claim(), Effect.REPAIRS, seeds=(0,), allow_unsandboxed=True
    )
    assert evidence.sandbox == "rlimits only" and evidence.torch, evidence


def test_permission_to_do_without_is_not_used_where_there_is_a_sandbox() -> None:
    if LEVEL is None:
        pytest.skip(WHY)
    assert runner.choose_sandbox(sys.executable, allow_unsandboxed=True) == LEVEL


def test_an_interpreter_that_says_nothing_has_no_sandbox(tmp_path: Path) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\necho it broke >&2\n")
    silent.chmod(0o755)
    assert sandbox._asked([str(silent)], {}) == {"landlock": 0, "why": "it broke"}
    assert sandbox._asked([str(tmp_path / "absent")], {})["landlock"] == 0


@pytest.mark.parametrize("part", ["landlock", "seccomp", "drop_capabilities"])
def test_a_part_that_fails_leaves_no_sandbox(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if LEVEL is None or LEVEL.name != sandbox.LANDLOCK:
        pytest.skip("there is no Landlock here")

    def fail(*_: object) -> None:
        raise sandbox.SandboxError(f"{part}: Operation not permitted")

    monkeypatch.setattr(sandbox, part, fail)
    found = sandbox.describe()
    assert (found["landlock"], found["why"]) == (0, f"{part}: Operation not permitted")


@pytest.mark.parametrize("part", ["landlock", "seccomp"])
def test_a_part_that_does_nothing_is_noticed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if LEVEL is None or LEVEL.name != sandbox.LANDLOCK:
        pytest.skip("there is no Landlock here")
    monkeypatch.setattr(sandbox, part, lambda *_: None)
    found = sandbox.describe()
    wrong = {"landlock": "a file outside can still be read", "seccomp": "the network is not refused"}[part]
    assert found["landlock"] == 0 and found["why"].startswith(wrong)


# -- the filter, run here as the kernel runs it ------------------------------------------------


def answer(code: list[Any], architecture: int, number: int, *arguments: int) -> int:
    """What a filter says of a call."""
    padded = [value & (2**64 - 1) for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("=iIQ6Q", number, architecture, 0, *padded)
    accumulator, at = 0, 0
    for _ in range(10_000):
        operation, yes, no, operand = code[at]
        at += 1
        if operation == sandbox.LOAD:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif operation == sandbox.AND:
            accumulator &= operand
        elif operation == sandbox.RETURN:
            return int(operand)
        else:
            test = {
                sandbox.JUMP_EQUAL: accumulator == operand,
                sandbox.JUMP_GREATER_EQUAL: accumulator >= operand,
                sandbox.JUMP_ANY_BIT: bool(accumulator & operand),
            }[operation]
            at += yes if test else no
    raise AssertionError("the filter does not end")


@pytest.mark.parametrize("machine", sandbox.MACHINES)
@pytest.mark.parametrize("abi", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("notify", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_the_filter_says_what_it_must(machine: str, abi: int, notify: bool, counted: bool) -> None:
    column, architecture = sandbox.MACHINES[machine]
    code = sandbox.program(machine, abi=abi, notify=notify, counted=counted)
    assert len(code) < 4096  # BPF_MAXINSNS

    def of(numbers: tuple[Any, ...], *arguments: int) -> int:
        return answer(code, architecture, numbers[column], *arguments)

    denied = sandbox.fails(errno.EPERM)
    kept = sandbox.NOTIFY if notify and not counted else sandbox.ALLOW
    for table, expected in (
        (sandbox.REFUSED, denied),
        (sandbox.ABSENT, sandbox.fails(errno.ENOSYS)),
        (sandbox.PRETENDED, sandbox.fails(0)),
    ):
        assert {of(numbers) for numbers in table.values() if numbers[column] is not None} == {expected}
    assert answer(code, architecture, sandbox.LAST + 1) == sandbox.fails(errno.ENOSYS)
    assert answer(code, architecture ^ 0x80000000, 1) == sandbox.KILL
    assert answer(code, architecture, 0 if machine == "x86_64" else 63) == sandbox.ALLOW  # read
    if machine == "x86_64":
        assert answer(code, architecture, sandbox.X32 + 1) == sandbox.KILL
    assert of(sandbox.CLONE, 0x003D0F00) == of(sandbox.CLONE, 17) == sandbox.ALLOW
    assert of(sandbox.CLONE, 0x10000000 | 17) == of(sandbox.CLONE, 0x8000) == denied
    assert of(sandbox.CLONE, 0x00010F00 & ~sandbox.CLONE_FILES) == denied  # a thread
    assert of(sandbox.CLOSE_RANGE, 3, 9, 0) == sandbox.ALLOW and of(sandbox.CLOSE_RANGE, 3, 9, 2) == denied
    assert of(sandbox.SOCKETPAIR, 1, 1 | 0o2000000) == kept
    assert of(sandbox.MMAP, 0, 9, 3, 0x22) == of(sandbox.MMAP, 0, 9, 3, 0x1) == sandbox.ALLOW
    unseen = kept if notify or counted else sandbox.fails(errno.ENOMEM)
    assert of(sandbox.MMAP, 0, 9, 3, 0x21) == of(sandbox.MMAP, 0, 9, 3, 0x4023) == unseen
    buffers = sandbox.ALLOW if counted else sandbox.fails(0)
    assert of(sandbox.SETSOCKOPT, 3, 1, 7) == buffers and of(sandbox.SETSOCKOPT, 3, 1, 2) == sandbox.ALLOW
    assert of(sandbox.SOCKETPAIR, 1, 2) == of(sandbox.SOCKETPAIR, 2, 1) == denied
    assert of(sandbox.SENDTO, 3) == sandbox.ALLOW and of(sandbox.SENDTO, 3, 0, 0, 0, 0x7F0000) == denied
    assert of(sandbox.IOCTL, 1, 0x5401) == sandbox.ALLOW
    assert of(sandbox.IOCTL, 1, 0x5412) == sandbox.fails(errno.ENOTTY)  # TIOCSTI
    assert of(sandbox.FCNTL, 3, 2) == sandbox.ALLOW and of(sandbox.FCNTL, 3, 8) == denied
    assert of(sandbox.PRLIMIT, 0) == of(sandbox.PRLIMIT, os.getpid()) == sandbox.ALLOW
    assert of(sandbox.PRLIMIT, 1) == denied
    assert of(sandbox.PRCTL, 4, 0) == sandbox.fails(0) and of(sandbox.PRCTL, 15) == sandbox.ALLOW
    assert of(sandbox.SETPRIORITY, 0, 0) == sandbox.ALLOW and of(sandbox.SETPRIORITY, 2, 0) == denied
    other = (sandbox.NOTIFY if notify else denied) if abi < 6 else sandbox.ALLOW
    assert of(sandbox.SIGNALS["kill"], 1, 9) == other
    assert of(sandbox.SIGNALS["kill"], os.getpid(), 9) == sandbox.ALLOW
    old = 0 < abi < 3
    assert (of(sandbox.TRUNCATE_CALL) == sandbox.ALLOW) is not old
    assert (of(sandbox.OPENAT, 0, 0, os.O_TRUNC) == sandbox.ALLOW) is not old
    assert of(sandbox.OPENAT, 0, 0, os.O_TRUNC | os.O_WRONLY) == sandbox.ALLOW


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_the_kernel_s(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed")
    text = HEADERS[machine].read_text()
    official = {
        name.removeprefix("3264_"): int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    }
    tables = {**sandbox.REFUSED, **sandbox.ABSENT, **sandbox.PRETENDED, **sandbox.SIGNALS}
    tables |= {"socketpair": sandbox.SOCKETPAIR, "sendto": sandbox.SENDTO, "ioctl": sandbox.IOCTL}
    tables |= {"fcntl": sandbox.FCNTL, "prlimit64": sandbox.PRLIMIT, "setpriority": sandbox.SETPRIORITY}
    tables |= {"sched_setaffinity": sandbox.SETAFFINITY, "truncate": sandbox.TRUNCATE_CALL}
    tables |= {"clone": sandbox.CLONE, "openat": sandbox.OPENAT, "prctl": sandbox.PRCTL, "mmap": sandbox.MMAP}
    tables |= {"setsockopt": sandbox.SETSOCKOPT, "close_range": sandbox.CLOSE_RANGE}
    tables |= dict(zip(("sendmsg", "sendmmsg"), sandbox.SENDING))
    column = sandbox.MACHINES[machine][0]
    ours = {name: numbers[column] for name, numbers in tables.items() if name in official}
    assert ours == {name: official[name] for name in ours}
    assert len(ours) > 80


# -- what is told to other programs --------------------------------------------------------------


def test_bubblewrap_is_told_what_may_be_read_and_written() -> None:
    files = sandbox.Readable(["/usr", "/usr/lib/x", "/proc/meminfo", "/dev/null"], ["/p"])
    command = sandbox.bubblewrap(files, ["/t/run"], ["/own"], 4096)
    assert command[:2] == ["bwrap", "--unshare-all"] and command[-1] == "--"
    assert "--bind /t/run /t/run" in " ".join(command) and "/proc/meminfo" not in command
    assert command.index("/usr") < command.index("/usr/lib/x")


def test_sandbox_exec_is_told_what_may_be_read_and_written() -> None:
    profile = sandbox.seatbelt_profile(sandbox.Readable(["/usr", '/a "b"'], ["/p"]), ["/t/run"], ["/own"])
    assert "(deny default)" in profile and "network" not in profile
    assert '(subpath "/a \\"b\\"")' in profile and '(allow file-write*\n  (subpath "/t/run"))' in profile
    assert profile.count("(") == profile.count(")")


# -- which files -----------------------------------------------------------------------------------


def test_a_project_is_opened_without_its_secrets(yard: Yard) -> None:
    found = sandbox.project_files(str(yard.project), str(yard.project / "src" / "train.py"))
    names = {os.path.relpath(path, yard.project) for path in found.whole}
    assert names == {"data.txt", "train.py", "src/more.txt", "other/deep/more.txt"}
    listed = {os.path.relpath(path, yard.project) for path in found.listed}
    assert listed == {".", "src", "other", "other/deep"}


def test_of_a_folder_without_end_the_rest_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p/many").mkdir(parents=True)
    (tmp_path / "p/train.py").touch()
    for number in range(10):
        (tmp_path / "p/many" / str(number)).touch()
    monkeypatch.setattr(sandbox, "is_shared", lambda folder: False)
    found = sandbox.project_files(str(tmp_path / "p"), str(tmp_path / "p/train.py"))
    assert str(tmp_path / "p/many") in found.whole
    monkeypatch.setattr(sandbox, "LOOKED_AT", 9)
    found = sandbox.project_files(str(tmp_path / "p"), str(tmp_path / "p/train.py"))
    assert found.whole == [str(tmp_path / "p/train.py")]
    monkeypatch.setattr(sandbox, "LOOKED_AT", 99)
    deep = tmp_path / "p/many" / "/".join(["d"] * 80)
    deep.mkdir(parents=True)
    (deep / ".env").touch()
    found = sandbox.project_files(str(tmp_path / "p"), str(tmp_path / "p/train.py"))
    assert not any(str(deep).startswith(path) for path in found.whole)


def test_a_crowded_folder_is_not_opened(yard: Yard, tmp_path: Path) -> None:
    assert (
        sandbox.is_shared(str(yard.home))
        and sandbox.is_shared(str(yard.home.parent))
        and sandbox.is_shared("/")
    )
    assert not sandbox.is_shared(str(yard.project))
    (yard.home / "train.py").touch()
    beside = sandbox.project_files(str(yard.home), str(yard.home / "train.py"))
    # Other tests may have put plain files there; the folders are what must not be open.
    assert str(yard.home / "train.py") in beside.whole and beside.listed == []
    assert not any(os.path.isdir(path) for path in beside.whole)
    inner = sandbox.project_files("/", str(yard.project / "train.py"))
    assert os.path.basename(inner.listed[0]) == "project"
    linked = tmp_path / "linked"
    linked.symlink_to(yard.home)
    assert sandbox.project_files(str(linked), str(linked / "train.py")).listed == []


def test_names_that_are_secrets() -> None:
    secret = [
        ".env",
        ".git",
        ".ssh",
        "credentials",
        "credentials.json",
        "secrets.yml",
        "id_rsa",
        "server.pem",
    ]
    plain = [
        ".gitignore",
        ".gitkeep",
        ".DS_Store",
        "tokenizer.json",
        "keys.py",
        "train.py",
        "secret_sharing.py",
        "model.keras",
        "environment.yml",
    ]
    assert all(sandbox.SECRET.match(name) for name in secret)
    assert not any(sandbox.SECRET.match(name) for name in plain)


def test_packages_installed_as_editable_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "work" / "src"
    (source / "package").mkdir(parents=True)
    (source / ".env").touch()
    monkeypatch.syspath_prepend(str(source))
    found = sandbox.interpreter_files()
    assert str(source / "package") in found.whole and str(source / ".env") not in found.whole
    assert str(source) in found.listed and "/dev/urandom" in found.whole
