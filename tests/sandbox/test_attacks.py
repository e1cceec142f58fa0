"""Hostile scripts get nowhere: each is looked at from outside, and is shown to work without the sandbox."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redteam import LANDLOCK, LEVEL, SECRET, WHY, Attack, Yard, bubblewrap

from gradfix.runtime.sandbox import levels, seccomp
from gradfix.verify.recording.records import Recording

pytest_plugins = ("redteam",)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the attacks are written for Linux")

OTHER = bubblewrap()
LEVELS: dict[str, levels.Level | str] = {"here": LEVEL or f"no sandbox here: {WHY}"}
for _abi in (1, 2, 3, 5):
    LEVELS[f"abi-{_abi}"] = (
        "no Landlock here"
        if LANDLOCK is None
        else LANDLOCK._replace(newest=_abi, detail=f"ABI {_abi} at most")
    )
LEVELS["bubblewrap"] = OTHER


def level(name: str) -> levels.Level:
    found = LEVELS[name]
    if isinstance(found, str):
        pytest.skip(found)
    return found


Reached = Callable[[Yard, Recording], bool]


@dataclass(frozen=True)
class Case:
    """An attack, and how its success shows."""

    code: str
    reached: Reached
    alone: bool = True
    """Whether it may be run without a sandbox, to show that it is one."""
    everywhere: bool = False
    """Whether it depends on the ABI of Landlock, so that old ones are tried too."""


def leaked(yard: Yard, recording: Recording) -> bool:
    return SECRET in recording.output


def there(name: str) -> Reached:
    return lambda yard, recording: Path(str(yard.values["OUTSIDE"]), name).exists()


def precious(yard: Yard, recording: Recording) -> bool:
    """Whether the file outside is not what it was."""
    path = yard.outside / "precious.txt"
    return not path.exists() or path.read_text() != "precious"


def changed(yard: Yard, recording: Recording) -> bool:
    seen = (yard.outside / "precious.txt").stat()
    return stat.S_IMODE(seen.st_mode) == 0o777 or seen.st_mtime == 7


def visited(name: str) -> Reached:
    def reached(yard: Yard, recording: Recording) -> bool:
        for _ in range(40):
            if yard.listeners[name].visits:
                return True
            time.sleep(0.01)
        return False

    return reached


def harmed(yard: Yard, recording: Recording) -> bool:
    for _ in range(40):
        if yard.victim.poll() is not None:
            return True
        time.sleep(0.01)
    return False


def said(text: str) -> Reached:
    return lambda yard, recording: text in recording.output


SYSCALL = "libc = ctypes.CDLL(None, use_errno=True)\n"
ATTACH = f"""{SYSCALL}
if libc.ptrace(16, VICTIM, 0, 0) == 0:
    print("attached"); os.waitpid(VICTIM, 0x40000000)
    libc.ptrace(17, VICTIM, 0, 0)
"""
OWNER = """
import fcntl, signal
one, other = socket.socketpair()
fcntl.fcntl(one, fcntl.F_SETOWN, VICTIM)
fcntl.fcntl(one, fcntl.F_SETFL, fcntl.fcntl(one, fcntl.F_GETFL) | os.O_ASYNC)
other.send(b"x")
"""
READ_MEMORY = f"""{SYSCALL}
start = next(line for line in open("/proc/%d/maps" % VICTIM) if "[stack]" in line).split("-")
begin, end = int(start[0], 16), int(start[1].split()[0], 16)
buffer = ctypes.create_string_buffer(end - begin)
class vec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
here, yonder = vec(ctypes.addressof(buffer), end - begin), vec(begin, end - begin)
libc.process_vm_readv(VICTIM, ctypes.byref(here), 1, ctypes.byref(yonder), 1, 0)
at = buffer.raw.find(b"open-sesame")
print(buffer.raw[at : at + 20].decode() if at >= 0 else "")
"""
MEMORY_FILE = """
start = next(line for line in open("/proc/%d/maps" % VICTIM) if "[stack]" in line).split("-")
begin, end = int(start[0], 16), int(start[1].split()[0], 16)
memory = os.open("/proc/%d/mem" % VICTIM, os.O_RDWR)
data = os.pread(memory, end - begin, begin)
at = data.find(b"open-sesame")
print(data[at : at + 20].decode() if at >= 0 else "")
"""
DATAGRAM = """
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.sendto(b"x", DATAGRAM)
"""
THIEF = """
os.link(HOME + "/documents/diary.txt", "mine.txt")
print(open("mine.txt").read())
"""
LEFT_BEHIND = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3): os.close(descriptor)
        os.environ["LEFT"] = OUTSIDE
        os.execv("/bin/sleep", ["left-" + OUTSIDE, "20"])
    os._exit(0)
time.sleep(0.3)
"""


def left_behind(yard: Yard, recording: Recording) -> bool:
    name = f"left-{yard.outside}".encode()
    found = False
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.read_bytes().startswith(name):
                found = True
                os.kill(int(place.parent.name), 9)
        except (OSError, ValueError):
            continue
    return found


SHARED = f"/dev/shm/gradfix-{os.getpid()}"
"""Begins the names of files in the memory that all programs share, for this process alone."""
CASES: dict[str, Case] = {
    # -- files, to write
    "write outside": Case("open(OUTSIDE + '/evil', 'w')", there("evil"), everywhere=True),
    "write into the home": Case("open(HOME + '/evil', 'w')", lambda y, r: _gone(y.home / "evil")),
    "write into the project": Case(
        "open(PROJECT + '/evil', 'w')", lambda y, r: (y.project / "evil").exists()
    ),
    "write over the script": Case(
        "open(PROJECT + '/train.py', 'a').write('#')", lambda y, r: y.script.read_text().endswith("#")
    ),
    "write by a shell": Case("os.system('echo > %s/evil' % OUTSIDE)", there("evil")),
    "make a folder": Case("os.mkdir(OUTSIDE + '/evil')", there("evil"), everywhere=True),
    "write through a link": Case(
        "os.symlink(OUTSIDE, 'link'); open('link/evil', 'w')", there("evil"), everywhere=True
    ),
    "write through a hard link": Case(
        "os.link(OUTSIDE + '/precious.txt', 'mine'); open('mine', 'w')", precious, everywhere=True
    ),
    "write through a descriptor": Case(
        "f = os.open('/', os.O_RDONLY | 0o10000000)\nopen('/proc/self/fd/%d%s/evil' % (f, OUTSIDE), 'w')",
        there("evil"),
    ),
    "move something out": Case(
        "open('mine', 'w'); os.rename('mine', OUTSIDE + '/evil')", there("evil"), everywhere=True
    ),
    "move something in": Case("os.rename(OUTSIDE + '/precious.txt', 'mine')", precious, everywhere=True),
    "remove": Case("os.unlink(OUTSIDE + '/precious.txt')", precious, everywhere=True),
    "truncate": Case("os.truncate(OUTSIDE + '/precious.txt', 0)", precious, everywhere=True),
    "truncate the project's data": Case(
        "os.truncate(PROJECT + '/data.txt', 0)",
        lambda y, r: not (y.project / "data.txt").read_text(),
        everywhere=True,
    ),
    "truncate by opening to read": Case(
        "os.open(PROJECT + '/data.txt', os.O_RDONLY | os.O_TRUNC)",
        lambda y, r: not (y.project / "data.txt").read_text(),
        everywhere=True,
    ),
    "change a mode": Case("os.chmod(OUTSIDE + '/precious.txt', 0o777)", changed, everywhere=True),
    "change a mode by a descriptor": Case(
        "os.fchmod(os.open(PROJECT + '/data.txt', os.O_RDONLY), 0o777)",
        lambda y, r: stat.S_IMODE((y.project / "data.txt").stat().st_mode) == 0o777,
    ),
    "change a time": Case("os.utime(OUTSIDE + '/precious.txt', (7, 7))", changed),
    "make a socket": Case(
        "socket.socket(socket.AF_UNIX).bind('s'); os.rename('s', OUTSIDE + '/evil')", there("evil")
    ),
    "leave shared memory": Case(f"open('{SHARED}-evil', 'w')", lambda y, r: _gone(Path(f"{SHARED}-evil"))),
    # -- files, to read
    "read a key": Case("print(open(HOME + '/.ssh/id_ed25519').read())", leaked, everywhere=True),
    "read a document": Case("print(open(HOME + '/documents/diary.txt').read())", leaked),
    "read through a link in the project": Case("print(open(PROJECT + '/stolen.txt').read())", leaked),
    "read the project's secrets": Case(
        "for name in ('.env', '.git/config', 'credentials.json', 'server.key'):\n"
        "    try: print(open(PROJECT + '/' + name).read())\n"
        "    except OSError as error: print(error)",
        leaked,
    ),
    "read a hidden file deep in the project": Case(
        "os.system('cat %s/other/deep/.env' % PROJECT)", leaked, everywhere=True
    ),
    "read by another program": Case("os.system('cat %s/.aws/credentials' % HOME)", leaked),
    "read by a link of one's own": Case(THIEF, leaked),
    "read shared memory": Case(f"os.system('cat {SHARED}-canary')", leaked),
    "list the home": Case("print(os.listdir(HOME))", said("documents")),
    # -- other processes
    "read another's environment": Case("print(open('/proc/%d/environ' % VICTIM).read())", leaked),
    "read another's arguments": Case("print(open('/proc/%d/cmdline' % VICTIM).read())", leaked),
    "read another's memory": Case(READ_MEMORY, leaked),
    "read another's memory as a file": Case(MEMORY_FILE, leaked),
    "trace another": Case(ATTACH, said("attached"), everywhere=True),
    "end another": Case("os.kill(VICTIM, 15)", harmed, everywhere=True),
    "end a thread of another": Case(f"{SYSCALL}libc.tgkill(VICTIM, VICTIM, 15)", harmed, everywhere=True),
    "queue a signal": Case(
        f"{SYSCALL}info = struct.pack('iiiiiiQ', 15, 0, -1, 0, os.getpid(), os.getuid(), 0)\n"
        "info = info.ljust(128, b'\\0')\n"
        "libc.syscall(129 if os.uname().machine == 'x86_64' else 138, VICTIM, 15, info)",
        harmed,
        everywhere=True,
    ),
    "end another by its descriptor": Case(
        "import signal\nsignal.pidfd_send_signal(os.pidfd_open(VICTIM), 15)", harmed
    ),
    "have the kernel signal another": Case(OWNER, harmed, everywhere=True),
    "slow another down": Case(
        "os.setpriority(os.PRIO_PROCESS, VICTIM, 19)",
        lambda y, r: os.getpriority(os.PRIO_PROCESS, y.victim.pid) == 19,
    ),
    "limit another": Case(
        "import resource\nresource.prlimit(VICTIM, resource.RLIMIT_CORE, (0, 0))\nprint('limited')",
        said("limited"),
    ),
    "outlive the run": Case(LEFT_BEHIND, left_behind, everywhere=True),
    # -- the network
    "TCP": Case("socket.create_connection(TCP, 2)", visited("tcp"), everywhere=True),
    "UDP": Case("socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', UDP)", visited("udp")),
    "a unix socket": Case("socket.socket(socket.AF_UNIX).connect(UNIX)", visited("unix"), everywhere=True),
    "an abstract socket": Case(
        "socket.socket(socket.AF_UNIX).connect(ABSTRACT)", visited("abstract"), everywhere=True
    ),
    "a datagram from a pair": Case(DATAGRAM, visited("datagram")),
    "the network by a shell": Case("os.system('bash -c \"echo > /dev/tcp/%s/%d\"' % TCP)", visited("tcp")),
    # -- the environment
    "variables": Case("os.system('env'); print(os.environ)", leaked, alone=False),
}


BETWEEN = ("abi-2", "abi-3")
"""Levels between the least and the most that Landlock gives."""
IN_BUBBLEWRAP = ("write outside", "read a key", "end another", "outlive the run", "TCP")


def _gone(path: Path) -> bool:
    """Whether a file was there; it is removed."""
    was_there = path.exists()
    path.unlink(missing_ok=True)
    return was_there


def _modes() -> Iterator[object]:
    for name, case in CASES.items():
        for mode in ("without", *LEVELS):
            if mode == "without" and not case.alone:
                continue
            if mode.startswith("abi") and not case.everywhere:
                continue
            # A run in bubblewrap imports torch for itself alone, which takes seconds.
            long = (mode == "bubblewrap" and name not in IN_BUBBLEWRAP) or mode in BETWEEN
            yield pytest.param(name, mode, id=f"{name}-{mode}", marks=[pytest.mark.long] if long else [])


@pytest.fixture(autouse=True, scope="module")
def canary() -> Iterator[None]:
    """Something in the memory that all programs share."""
    path = Path(f"{SHARED}-canary")
    if path.parent.is_dir():
        path.write_text(SECRET)
    yield
    path.unlink(missing_ok=True)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("name", "mode"), list(_modes()))
def test_an_attack_succeeds_only_without_a_sandbox(name: str, mode: str, yard: Yard, attack: Attack) -> None:
    case = CASES[name]
    recording = attack(levels.UNSANDBOXED if mode == "without" else level(mode), case.code)
    assert recording.ending == "finished", (recording.detail, recording.uncaught, recording.output)
    assert len(recording.backwards) == 1
    assert case.reached(yard, recording) == (mode == "without"), recording.output


SELDOM = ("bubblewrap", *BETWEEN)
MODES = [pytest.param(mode, marks=[pytest.mark.long] if mode in SELDOM else []) for mode in LEVELS]


@pytest.mark.parametrize("mode", MODES)
def test_the_server_and_whoever_started_it_cannot_be_ended(mode: str, yard: Yard, attack: Attack) -> None:
    code = """
for target in (os.getppid(), os.getsid(os.getppid()), 1):
    for number in (15, 9):
        try: os.kill(target, number); print("reached", target)
        except OSError as error: print(error.strerror)
try: os.killpg(os.getpgid(os.getppid()), 0)
except OSError as error: print(error.strerror)
"""
    recording = attack(level(mode), code, apart=False)
    # Within bubblewrap the server is part of the sandbox, and is ended with it.
    assert recording.ending == "finished" and "reached" not in recording.output, recording.output
    again = attack(level(mode), "print('alive')", apart=False)
    assert "alive" in again.output


@pytest.mark.parametrize("mode", MODES)
def test_a_signal_to_everybody_stays_within(mode: str, yard: Yard, attack: Attack) -> None:
    recording = attack(level(mode), "import signal\nos.kill(-1, signal.SIGTERM)\nprint('sent')", apart=False)
    assert recording.ending in ("finished", "died", "error", "killed"), recording.detail
    assert yard.victim.poll() is None


@pytest.mark.parametrize("mode", MODES)
def test_its_own_processes_can_be_signalled(mode: str, attack: Attack) -> None:
    code = """
import signal
child = os.fork()
if child == 0:
    time.sleep(30)
os.kill(child, signal.SIGTERM)
print("ended by", os.waitpid(child, 0)[1])
"""
    recording = attack(level(mode), code, apart=False)
    assert "ended by 15" in recording.output, (recording.output, recording.detail, recording.uncaught)


DESCRIPTORS = """
kinds = []
for name in os.listdir("/proc/self/fd"):
    try: kinds.append(os.readlink("/proc/self/fd/" + name))
    except OSError: continue
    try: os.write(int(name), FORGED) if int(name) > 2 else 0
    except OSError: pass
print("HELD", kinds)
"""


def test_no_channel_to_the_server_is_held(yard: Yard, attack: Attack) -> None:
    yard.values["FORGED"] = b""
    recording = attack(level("here"), DESCRIPTORS, apart=False)
    held = recording.output.partition("HELD")[2]
    assert "/dev/pts/" in held and "events.jsonl" in held  # Its own terminal, at which nobody types.
    assert "pipe:" not in held and "socket:" not in held and "seccomp" not in held
    # It can write to its own record, which is then no record.
    yard.values["FORGED"] = b'{"job": "forged", "signal": 9, "code": 0}\n'
    assert attack(level("here"), DESCRIPTORS, apart=False).ending == "trouble"
    assert "alive" in attack(level("here"), "print('alive')", apart=False).output


REFUSALS = """
import json
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
found = {}
for name, number in NUMBERS.items():
    result = libc.syscall(number, *[ctypes.c_long(-1)] * 6)
    found[name] = ctypes.get_errno() if result < 0 else 0
print("FOUND" + json.dumps(found))
"""


def _numbers() -> dict[str, int]:
    machine = os.uname().machine
    if machine not in seccomp.MACHINES:
        return {}
    column = seccomp.MACHINES[machine][0]
    tables = {**seccomp.REFUSED, **seccomp.ABSENT, **seccomp.PRETENDED}
    # Without a sandbox these would do it.
    left = {
        name: numbers[column]
        for name, numbers in tables.items()
        if name not in ("reboot", "vhangup", "setsid")
    }
    return {name: number for name, number in left.items() if number is not None}


@pytest.mark.parametrize("mode", ["here", "bubblewrap"])
def test_calls_that_no_training_needs_are_refused(mode: str, yard: Yard, attack: Attack) -> None:
    import errno
    import json

    yard.values["NUMBERS"] = _numbers()
    recording = attack(level(mode), REFUSALS)
    found = json.loads(recording.output.partition("FOUND")[2].split("\n")[0])
    expected = dict.fromkeys(seccomp.REFUSED, errno.EPERM)
    expected |= dict.fromkeys(seccomp.ABSENT, errno.ENOSYS) | dict.fromkeys(seccomp.PRETENDED, 0)
    assert found == {name: expected[name] for name in found}
    bare = attack(levels.UNSANDBOXED, REFUSALS)
    without = json.loads(bare.output.partition("FOUND")[2].split("\n")[0])
    assert [
        name for name in ("socket", "mount", "chmod", "memfd_create") if without[name] == expected[name]
    ] == []


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86-64 has other ways to make a call")
@pytest.mark.parametrize("way", ["x32", "int 0x80"])
def test_a_call_by_another_numbering_ends_the_process(way: str, attack: Attack) -> None:
    code = {
        "x32": "ctypes.CDLL(None).syscall(0x40000000 + 39)",
        # mov eax, 20 (getpid of 32-bit programs); int 0x80; ret
        "int 0x80": "import mmap\n"
        "page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        "page.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()",
    }[way]
    recording = attack(level("here"), code + "\nprint('went on')", apart=False)
    assert (recording.ending, recording.detail) == ("died", f"it was ended by signal {31}")
    assert "went on" not in recording.output


def test_new_namespaces_are_refused_to_new_processes(attack: Attack) -> None:
    code = """
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x10000000, 0x40000000, 0x00020000, 0x8000):
    pid = libc.syscall(56 if os.uname().machine == "x86_64" else 220, flag | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    print("made" if pid > 0 else "refused")
"""
    recording = attack(level("here"), code)
    assert recording.output.split().count("refused") == 4 and "made" not in recording.output


def test_other_programs_inherit_the_sandbox(attack: Attack) -> None:
    code = "os.system('grep -E \"^(NoNewPrivs|Seccomp|CapEff|CapBnd):\" /proc/thread-self/status || true')\n"
    code += "print(open('/proc/self/status').read())"
    recording = attack(level("here"), code, apart=False)
    status = dict(line.split(":\t", 1) for line in recording.output.splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == int(status["CapBnd"], 16) == 0


def test_a_program_that_the_script_wrote_cannot_be_started(attack: Attack) -> None:
    code = """
import shutil
shutil.copyfile("/bin/echo", "tool")
os.chmod("tool", 0o755)
try: os.execv("tool", ["tool", "started"])
except OSError as error: print(error.strerror)
"""
    assert "Permission denied" in attack(level("here"), code).output


def test_a_script_in_the_home_folder_does_not_open_the_home_folder(yard: Yard, attack: Attack) -> None:
    code = """
for name in ("beside.py", ".ssh/id_ed25519", ".netrc", "documents/diary.txt", ".config/gh/hosts.yml"):
    try: print(open(HOME + "/" + name).read())
    except OSError as error: print(error.strerror)
"""
    (yard.home / "beside.py").write_text("# a helper")
    (yard.home / "requirements.txt").write_text("torch")  # It looks like the root of a project.
    try:
        for path in (yard.home / "train.py", yard.home / "documents" / "train.py"):
            recording = attack(level("here"), code, apart=False, path=path)
            helper = path.parent == yard.home
            assert ("# a helper" in recording.output) == helper
            refused = [recording.output.count(one) for one in ("Permission denied", "No such file")]
            assert sum(refused) == 4
            assert (SECRET in recording.output) is (not helper)  # The script's own folder is open to it.
    finally:
        (yard.home / "requirements.txt").unlink()


def test_the_reason_names_what_was_refused(yard: Yard, attack: Attack) -> None:
    from gradfix.core.codemod import Claim
    from gradfix.verify.obstacles import why_not

    reasons = []
    for code in (
        "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/')",
        "open(HOME + '/.netrc')",
    ):
        recording = attack(level("here"), code, apart=False)
        reasons.append(why_not(recording, Claim()) or "")
    assert "tried to reach the network, which is off in the sandbox" in reasons[0]
    assert ".netrc, which the sandbox refuses" in reasons[1]
    assert all(reason.startswith("line ") for reason in reasons)
