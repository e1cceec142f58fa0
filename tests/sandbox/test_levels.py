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
from gradfix.runtime import sandbox
from gradfix.runtime.sandbox import confinement, kernel, levels, readable, seccomp, trial, wrappers
from gradfix.verify import runner, sandboxes, server, verification
from gradfix.verify.interpreter import Interpreter

pytest_plugins = ("redteam",)

NONE = "no sandbox here"


@pytest.fixture(autouse=True)
def _nothing_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sandboxes.ALLOW, raising=False)


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    sandboxes._sandbox.cache_clear()
    yield
    sandboxes._sandbox.cache_clear()


def pretend(
    monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any], programs: bool = False
) -> list[list[str]]:
    """Let the processes that are asked what there is answer this; what was asked is returned."""
    asked: list[list[str]] = []
    waiting = list(answers)

    def answer(command: list[str], *_: object) -> dict[str, Any]:
        asked.append(command)
        return waiting.pop(0)

    monkeypatch.setattr(levels, "_asked", answer)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if programs else None)
    return asked


NO_LANDLOCK = {"landlock": 0, "why": "Landlock: Function not implemented", "files": [["/usr"], []]}


def test_landlock_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"landlock": 4, "memory": False, "why": ""}, programs=True)
    found = sandboxes.choose_sandbox("python")
    assert str(found) == "landlock+seccomp (Landlock ABI 4, no shared memory)"
    assert not found.apart and not found.memory


@pytest.mark.parametrize(("platform", "program"), [("linux", "bwrap"), ("darwin", "sandbox-exec")])
def test_a_program_stands_in_where_a_trial_shows_that_it_works(
    platform: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    asked = pretend(monkeypatch, NO_LANDLOCK, {"why": None}, programs=True)
    found = sandboxes.choose_sandbox("python")
    assert found.apart and str(found) == {"bwrap": "bubblewrap+seccomp"}.get(program, program)
    assert asked[1][0] == program and "--inside" in asked[1]
    pretend(monkeypatch, NO_LANDLOCK, {"why": "the network can still be reached"}, programs=True)
    sandboxes._sandbox.cache_clear()
    with pytest.raises(sandboxes.CannotRun, match=f"{program}: the network can still be reached"):
        sandboxes.choose_sandbox("python")


def test_nothing_is_run_where_there_is_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, *[NO_LANDLOCK] * 2)
    for one in (runner, verification):
        monkeypatch.setattr(one, "choose_interpreter", lambda *_: Interpreter(sys.executable, "this"))
    started: list[Any] = []
    monkeypatch.setattr(server.subprocess, "Popen", lambda *args, **kwargs: started.append(args))
    evidence = verification.verify_rewrite(
        tmp_path / "a.py", "", "", Claim(), Effect.REPAIRS, python=sys.executable
    )
    assert (evidence.outcome, evidence.sandbox) == ("not run", "none: nothing was run")
    assert evidence.reason == (
        "no sandbox here (Landlock: Function not implemented; there is no bwrap); "
        "--allow-unsandboxed runs it with resource limits only"
    ).replace("bwrap", "sandbox-exec" if sys.platform == "darwin" else "bwrap")
    assert started == []
    with pytest.raises(sandboxes.CannotRun, match=NONE):
        runner.run_once(tmp_path / "a.py", "", python=sys.executable)


def test_it_is_run_where_that_is_allowed_and_the_evidence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "_asked", lambda *_: NO_LANDLOCK)
    monkeypatch.setattr(levels.shutil, "which", lambda name: None)
    for one in (runner, verification):
        monkeypatch.setattr(one, "choose_interpreter", lambda *_: Interpreter(sys.executable, "this"))
    code = "import torch\nw = torch.ones(1, requires_grad=True)\n(w * 2).sum().backward()\n"
    evidence = verification.verify_rewrite(
        tmp_path / "a.py", code, code, Claim(), Effect.REPAIRS, seeds=(0,), allow_unsandboxed=True
    )
    assert evidence.sandbox == "rlimits only" and evidence.torch, evidence


def test_permission_to_do_without_is_not_used_where_there_is_a_sandbox() -> None:
    if LEVEL is None:
        pytest.skip(WHY)
    assert sandboxes.choose_sandbox(sys.executable, allow_unsandboxed=True) == LEVEL


def test_an_interpreter_that_says_nothing_has_no_sandbox(tmp_path: Path) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\necho it broke >&2\n")
    silent.chmod(0o755)
    assert levels._asked([str(silent)], {}) == {"landlock": 0, "why": "it broke"}
    assert levels._asked([str(tmp_path / "absent")], {})["landlock"] == 0


@pytest.mark.parametrize("part", ["landlock", "seccomp", "drop_capabilities"])
def test_a_part_that_fails_leaves_no_sandbox(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if LEVEL is None or LEVEL.name != sandbox.LANDLOCK:
        pytest.skip("there is no Landlock here")

    def fail(*_: object) -> None:
        raise kernel.SandboxError(f"{part}: Operation not permitted")

    monkeypatch.setattr(confinement, part, fail)
    found = trial.describe()
    assert (found["landlock"], found["why"]) == (0, f"{part}: Operation not permitted")


@pytest.mark.parametrize("part", ["landlock", "seccomp"])
def test_a_part_that_does_nothing_is_noticed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if LEVEL is None or LEVEL.name != sandbox.LANDLOCK:
        pytest.skip("there is no Landlock here")
    monkeypatch.setattr(confinement, part, lambda *_: None)
    found = trial.describe()
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
        if operation == seccomp.LOAD:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif operation == seccomp.AND:
            accumulator &= operand
        elif operation == seccomp.RETURN:
            return int(operand)
        else:
            test = {
                seccomp.JUMP_EQUAL: accumulator == operand,
                seccomp.JUMP_GREATER_EQUAL: accumulator >= operand,
                seccomp.JUMP_ANY_BIT: bool(accumulator & operand),
            }[operation]
            at += yes if test else no
    raise AssertionError("the filter does not end")


@pytest.mark.parametrize("machine", seccomp.MACHINES)
@pytest.mark.parametrize("abi", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("notify", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_the_filter_says_what_it_must(machine: str, abi: int, notify: bool, counted: bool) -> None:
    column, architecture = seccomp.MACHINES[machine]
    code = seccomp.program(machine, abi=abi, notify=notify, counted=counted)
    assert len(code) < 4096  # BPF_MAXINSNS

    def of(numbers: tuple[Any, ...], *arguments: int) -> int:
        return answer(code, architecture, numbers[column], *arguments)

    denied = seccomp.fails(errno.EPERM)
    kept = seccomp.NOTIFY if notify and not counted else seccomp.ALLOW
    for table, expected in (
        (seccomp.REFUSED, denied),
        (seccomp.ABSENT, seccomp.fails(errno.ENOSYS)),
        (seccomp.PRETENDED, seccomp.fails(0)),
    ):
        assert {of(numbers) for numbers in table.values() if numbers[column] is not None} == {expected}
    assert answer(code, architecture, seccomp.LAST + 1) == seccomp.fails(errno.ENOSYS)
    assert answer(code, architecture ^ 0x80000000, 1) == seccomp.KILL
    assert answer(code, architecture, 0 if machine == "x86_64" else 63) == seccomp.ALLOW  # read
    if machine == "x86_64":
        assert answer(code, architecture, seccomp.X32 + 1) == seccomp.KILL
    assert of(seccomp.CLONE, 0x003D0F00) == of(seccomp.CLONE, 17) == seccomp.ALLOW
    assert of(seccomp.CLONE, 0x10000000 | 17) == of(seccomp.CLONE, 0x8000) == denied
    assert of(seccomp.CLONE, 0x00010F00 & ~seccomp.CLONE_FILES) == denied  # a thread
    assert of(seccomp.CLOSE_RANGE, 3, 9, 0) == seccomp.ALLOW and of(seccomp.CLOSE_RANGE, 3, 9, 2) == denied
    assert of(seccomp.SOCKETPAIR, 1, 1 | 0o2000000) == kept
    assert of(seccomp.MMAP, 0, 9, 3, 0x22) == of(seccomp.MMAP, 0, 9, 3, 0x1) == seccomp.ALLOW
    unseen = kept if notify or counted else seccomp.fails(errno.ENOMEM)
    assert of(seccomp.MMAP, 0, 9, 3, 0x21) == of(seccomp.MMAP, 0, 9, 3, 0x4023) == unseen
    buffers = seccomp.ALLOW if counted else seccomp.fails(0)
    assert of(seccomp.SETSOCKOPT, 3, 1, 7) == buffers and of(seccomp.SETSOCKOPT, 3, 1, 2) == seccomp.ALLOW
    assert of(seccomp.SOCKETPAIR, 1, 2) == of(seccomp.SOCKETPAIR, 2, 1) == denied
    assert of(seccomp.SENDTO, 3) == seccomp.ALLOW and of(seccomp.SENDTO, 3, 0, 0, 0, 0x7F0000) == denied
    assert of(seccomp.IOCTL, 1, 0x5401) == seccomp.ALLOW
    assert of(seccomp.IOCTL, 1, 0x5412) == seccomp.fails(errno.ENOTTY)  # TIOCSTI
    assert of(seccomp.FCNTL, 3, 2) == seccomp.ALLOW and of(seccomp.FCNTL, 3, 8) == denied
    assert of(seccomp.PRLIMIT, 0) == of(seccomp.PRLIMIT, os.getpid()) == seccomp.ALLOW
    assert of(seccomp.PRLIMIT, 1) == denied
    assert of(seccomp.PRCTL, 4, 0) == seccomp.fails(0) and of(seccomp.PRCTL, 15) == seccomp.ALLOW
    assert of(seccomp.SETPRIORITY, 0, 0) == seccomp.ALLOW and of(seccomp.SETPRIORITY, 2, 0) == denied
    other = (seccomp.NOTIFY if notify else denied) if abi < 6 else seccomp.ALLOW
    assert of(seccomp.SIGNALS["kill"], 1, 9) == other
    assert of(seccomp.SIGNALS["kill"], os.getpid(), 9) == seccomp.ALLOW
    old = 0 < abi < 3
    assert (of(seccomp.TRUNCATE_CALL) == seccomp.ALLOW) is not old
    assert (of(seccomp.OPENAT, 0, 0, os.O_TRUNC) == seccomp.ALLOW) is not old
    assert of(seccomp.OPENAT, 0, 0, os.O_TRUNC | os.O_WRONLY) == seccomp.ALLOW


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
    tables = {**seccomp.REFUSED, **seccomp.ABSENT, **seccomp.PRETENDED, **seccomp.SIGNALS}
    tables |= {"socketpair": seccomp.SOCKETPAIR, "sendto": seccomp.SENDTO, "ioctl": seccomp.IOCTL}
    tables |= {"fcntl": seccomp.FCNTL, "prlimit64": seccomp.PRLIMIT, "setpriority": seccomp.SETPRIORITY}
    tables |= {"sched_setaffinity": seccomp.SETAFFINITY, "truncate": seccomp.TRUNCATE_CALL}
    tables |= {"clone": seccomp.CLONE, "openat": seccomp.OPENAT, "prctl": seccomp.PRCTL, "mmap": seccomp.MMAP}
    tables |= {"setsockopt": seccomp.SETSOCKOPT, "close_range": seccomp.CLOSE_RANGE}
    tables |= dict(zip(("sendmsg", "sendmmsg"), seccomp.SENDING))
    column = seccomp.MACHINES[machine][0]
    ours = {name: numbers[column] for name, numbers in tables.items() if name in official}
    assert ours == {name: official[name] for name in ours}
    assert len(ours) > 80


# -- what is told to other programs --------------------------------------------------------------


def test_bubblewrap_is_told_what_may_be_read_and_written() -> None:
    files = readable.Readable(["/usr", "/usr/lib/x", "/proc/meminfo", "/dev/null"], ["/p"])
    command = wrappers.bubblewrap(files, ["/t/run"], ["/own"], 4096)
    assert command[:2] == ["bwrap", "--unshare-all"] and command[-1] == "--"
    assert "--bind /t/run /t/run" in " ".join(command) and "/proc/meminfo" not in command
    assert command.index("/usr") < command.index("/usr/lib/x")


def test_sandbox_exec_is_told_what_may_be_read_and_written() -> None:
    profile = wrappers.seatbelt_profile(readable.Readable(["/usr", '/a "b"'], ["/p"]), ["/t/run"], ["/own"])
    assert "(deny default)" in profile and "network" not in profile
    assert '(subpath "/a \\"b\\"")' in profile and '(allow file-write*\n  (subpath "/t/run"))' in profile
    assert profile.count("(") == profile.count(")")


# -- which files -----------------------------------------------------------------------------------


def test_a_project_is_opened_without_its_secrets(yard: Yard) -> None:
    found = readable.project_files(str(yard.project), str(yard.project / "src" / "train.py"))
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
    monkeypatch.setattr(readable, "is_shared", lambda folder: False)
    found = readable.project_files(str(tmp_path / "p"), str(tmp_path / "p/train.py"))
    assert str(tmp_path / "p/many") in found.whole
    monkeypatch.setattr(readable, "LOOKED_AT", 9)
    found = readable.project_files(str(tmp_path / "p"), str(tmp_path / "p/train.py"))
    assert found.whole == [str(tmp_path / "p/train.py")]
    monkeypatch.setattr(readable, "LOOKED_AT", 99)
    deep = tmp_path / "p/many" / "/".join(["d"] * 80)
    deep.mkdir(parents=True)
    (deep / ".env").touch()
    found = readable.project_files(str(tmp_path / "p"), str(tmp_path / "p/train.py"))
    assert not any(str(deep).startswith(path) for path in found.whole)


def test_a_crowded_folder_is_not_opened(yard: Yard, tmp_path: Path) -> None:
    assert (
        readable.is_shared(str(yard.home))
        and readable.is_shared(str(yard.home.parent))
        and readable.is_shared("/")
    )
    assert not readable.is_shared(str(yard.project))
    (yard.home / "train.py").touch()
    beside = readable.project_files(str(yard.home), str(yard.home / "train.py"))
    # Other tests may have put plain files there; the folders are what must not be open.
    assert str(yard.home / "train.py") in beside.whole and beside.listed == []
    assert not any(os.path.isdir(path) for path in beside.whole)
    inner = readable.project_files("/", str(yard.project / "train.py"))
    assert os.path.basename(inner.listed[0]) == "project"
    linked = tmp_path / "linked"
    linked.symlink_to(yard.home)
    assert readable.project_files(str(linked), str(linked / "train.py")).listed == []


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
    assert all(readable.SECRET.match(name) for name in secret)
    assert not any(readable.SECRET.match(name) for name in plain)


def test_packages_installed_as_editable_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "work" / "src"
    (source / "package").mkdir(parents=True)
    (source / ".env").touch()
    monkeypatch.syspath_prepend(str(source))
    found = readable.interpreter_files()
    assert str(source / "package") in found.whole and str(source / ".env") not in found.whole
    assert str(source) in found.listed and "/dev/urandom" in found.whole
