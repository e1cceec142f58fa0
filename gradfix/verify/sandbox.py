"""The sandbox that a watched run is in: what the kernel refuses to the user's code.

Like the probe this file runs in the user's interpreter, so it needs the standard library only and
has no syntax newer than Python 3.9. gradfix imports it too, to choose a level; and it can be run::

    python sandbox.py               prints as JSON what this interpreter can have on this machine
    python sandbox.py --inside F    tries, inside another sandbox that leaves folder F writable, what
                                    must be refused there, and prints that as JSON
    python sandbox.py --ask F COMMAND...
                                    becomes a command that may read everything and write to folder F
                                    alone, and has no network, as far as the kernel has Landlock

A level is one of

``landlock+seccomp``
    Linux on x86-64 and aarch64. The process confines itself after it was forked and before any of
    the user's code runs (:func:`confine`): Landlock for files, a seccomp filter for everything that
    Landlock does not know, no capabilities, and file systems of its own where namespaces allow them.
``bubblewrap+seccomp``
    Linux without Landlock: each run has a process of its own in the namespaces that ``bwrap`` makes.
``sandbox-exec``
    macOS: each run has a process of its own under a generated profile.
``rlimits only``
    No sandbox at all; chosen by ``--allow-unsandboxed`` and never otherwise.

That a level is there is never concluded from version numbers: it is tried, in a process made for
that, whether it refuses what it must refuse.

Sources: Linux ``include/uapi/linux/{landlock,seccomp,filter,audit,capability}.h``, ``asm/unistd_64.h``
(x86-64) and ``asm-generic/unistd.h`` (aarch64), the manual pages landlock(7), seccomp(2),
seccomp_unotify(2), and ``Documentation/userspace-api/landlock.rst`` for what each ABI added.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Collection
from typing import Any, NamedTuple

LANDLOCK = "landlock+seccomp"
BUBBLEWRAP = "bubblewrap+seccomp"
SEATBELT = "sandbox-exec"
RLIMITS = "rlimits only"


PROCESSES, TASKS, CGROUP = "processes", "tasks", "cgroup"
"""What the kernel may hold of a server and its runs, besides: a namespace of processes, the number of tasks
of a run, and control groups for their number and for memory."""


class SandboxError(Exception):
    """The sandbox cannot be set up; the message says which part of it, and why."""


def companion(name: str) -> Any:
    """A module that stands beside this file, by its path: where a user's interpreter runs this, that folder
    is on no import path."""
    known = "_gradfix_" + name
    if known not in sys.modules:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
        spec = importlib.util.spec_from_file_location(known, path)
        assert spec is not None and spec.loader is not None
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


# -- files: what may be read -------------------------------------------------------------------

SYSTEM = (
    # Programs and libraries.
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
    # Time, types of files, fonts, certificates (not their private keys).
    "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/fonts", "/etc/nsswitch.conf",
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/ca-certificates",
    # What torch, OpenMP and joblib ask about the processors and the memory.
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version",
    "/proc/filesystems", "/proc/vmstat", "/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/fs",
    "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
    # macOS.
    "/System", "/Library/Frameworks", "/Library/Fonts", "/private/var/db/timezone", "/opt/homebrew",
)  # fmt: skip
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""Not ``/dev/zero``: what is mapped of it is memory that nothing shows."""
SHARED_MEMORY = "/dev/shm"

PARTS = (
    "bin",
    "lib",
    "lib64",
    "libexec",
    "include",
    "share",
    "etc",
    "Lib",
    "DLLs",
    "Frameworks",
    "pyvenv.cfg",
)
"""What belongs to an installation of Python below its prefix: the prefix may be somebody's home."""

HARMLESS = r"(?!\.(DS_Store|gitkeep|keep|gitignore|gitattributes)$)"
"""Hidden files that tell nothing, and lie in many a folder of data."""
SECRET = re.compile(
    HARMLESS + r"(\.|(secrets?|credentials?)(\.|$)|id_(rsa|dsa|ecdsa|ed25519)|.*\.(pem|key|p12|pfx|kdbx)$)",
    re.IGNORECASE,
)
"""Names that are withheld wherever they are: all other hidden ones, and what is called a secret."""

ENTRIES = 4096
"""Entries of a folder that are allowed one by one."""
RULES = 1 << 16
"""Files and folders that are allowed one by one, in all folders together."""
LOOKED_AT = 1 << 21
"""Entries that are looked at below a folder, to find what is withheld; what comes later stays closed."""
DEPTH = 64
"""Folders in each other that are looked into."""


class Readable(NamedTuple):
    """What may be read."""

    whole: list[str]
    """Files, and folders with everything below them."""
    listed: list[str]
    """Folders whose names (and those below) may be listed."""


def is_shared(folder: str) -> bool:
    """Whether a folder holds more than a project: a home, what is above one, a temporary folder."""
    homes = [os.path.expanduser("~")]
    try:
        import pwd

        homes += [pwd.getpwuid(os.getuid()).pw_dir]
    except (ImportError, KeyError):
        pass
    crowded = [
        *homes,
        tempfile.gettempdir(),
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        "/run",
        "/etc",
        "/proc",
        "/home",
    ]
    real = os.path.join(os.path.realpath(folder), "")
    return any(os.path.join(os.path.realpath(one), "").startswith(real) for one in crowded)


def project_files(root: str, script: str) -> Readable:
    """What may be read of the project at ``root`` for the script at ``script``.

    What is hidden (``.git``, ``.env``, ``.ssh``) or called a secret is left out at every depth, and on the
    way from the root down to the script's own folder symbolic links as well, which a project that somebody
    else wrote may point anywhere. Of a folder that holds more than a project, such as the home folder, only
    the plain files beside the script are opened.
    """
    down = folders_down(root, script)
    folder = down[-1]
    if is_shared(folder):
        return Readable(
            [entry.path for entry in _visible(folder) if entry.is_file(follow_symlinks=False)], []
        )
    found = Readable([], [])
    for top, below in zip(down, [*down[1:], ""]):
        _open(found, top, without=below)
    return found


def folders_down(root: str, script: str) -> list[str]:
    """The folders from the project's root down to the script's own: those that are opened entry by entry."""
    folder = os.path.realpath(os.path.dirname(script))
    top = os.path.realpath(root)
    if is_shared(top) or not (folder + os.sep).startswith(os.path.join(top, "")):
        return [folder]
    found = [top]
    while found[-1] != folder:
        found.append(os.path.join(found[-1], os.path.relpath(folder, found[-1]).split(os.sep)[0]))
    return found


SYSTEM_FOLDERS = ("/etc", "/run", "/var/run", "/proc", "/sys", "/boot", "/dev")


def data_folders(folders: list[str]) -> Readable:
    """What may be read of folders outside the project.

    The configuration that names them may come with the code: so nothing that holds more than data, nothing
    hidden or secret, and no links to elsewhere.
    """
    found = Readable([], [])
    for folder in filter(is_data, folders):
        _open(found, os.path.realpath(folder))
    return found


def is_data(folder: str) -> bool:
    """Whether a folder is one that may hold data: not a home folder, a temporary one, the system's own, nor
    in one that is hidden."""
    real = os.path.realpath(folder)
    hidden = any(SECRET.match(part) for part in real.split(os.sep) if part)
    system = (real + os.sep).startswith(tuple(one + os.sep for one in SYSTEM_FOLDERS))
    return os.path.isdir(real) and not (is_shared(real) or hidden or system)


def _open(found: Readable, folder: str, without: str = "") -> None:
    """Add what may be read of a folder, entry by entry, all but the path ``without``."""
    left = [LOOKED_AT]
    found.listed.append(folder)
    for entry in _visible(folder):
        if entry.path != without:
            inner = _inside(entry.path, left) if entry.is_dir(follow_symlinks=False) else None
            found.whole.extend([entry.path] if inner is None else inner.whole)
            found.listed.extend([] if inner is None else inner.listed)
    del found.whole[RULES:]


def _inside(folder: str, left: list[int], depth: int = 0) -> Readable | None:
    """What may be read below a folder where something in it is to be withheld; nothing if all of it may.

    Args:
        left: How many entries may be looked at yet.
    """
    try:
        with os.scandir(folder) as scanned:
            entries = list(scanned)
    except OSError:
        return Readable([], [])
    left[0] -= len(entries)
    if left[0] < 0 or depth > DEPTH:
        return Readable([], [])
    shown = [entry for entry in entries if not SECRET.match(entry.name)]
    whole = len(shown) == len(entries)
    found = Readable([], [folder])
    for entry in shown:
        inner = _inside(entry.path, left, depth + 1) if entry.is_dir(follow_symlinks=False) else None
        whole = whole and inner is None
        found.listed.extend([] if inner is None else inner.listed)
        if inner is not None:
            found.whole.extend(inner.whole)
        elif not entry.is_symlink():
            found.whole.append(entry.path)
    return None if whole else found


def _visible(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder that are no secret and no symbolic link; folders and Python files first."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not SECRET.match(entry.name) and not entry.is_symlink()]
    except OSError:
        return []
    found.sort(key=lambda entry: (not entry.is_dir(), not entry.name.endswith(".py"), entry.name))
    return found[:ENTRIES]


def interpreter_files() -> Readable:
    """What this interpreter may read: itself, its libraries, its packages (editable ones too), the system."""
    paths = [path for name, path in sysconfig.get_paths().items() if name != "data"]
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    return _installed(prefixes, paths, [*sys.path, *_editable()])


def environment_files(prefixes: Collection[str]) -> Readable:
    """What the interpreter of an environment that is not to be asked may read: what lies below ``prefixes``,
    those of the environment and of the interpreter that it was made with, and the system."""
    return _installed(prefixes, [], os.environ.get("PYTHONPATH", "").split(os.pathsep))


def _installed(prefixes: Collection[str], paths: list[str], imported_from: list[str]) -> Readable:
    whole = list(SYSTEM)
    for prefix in prefixes:
        whole += [os.path.join(prefix, part) for part in PARTS]
    whole += paths
    for variable in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
        whole += [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
    whole = [path for path in whole if os.path.isabs(path) and os.path.exists(path) and not is_shared(path)]
    found = Readable([], [])
    installed = tuple(os.path.join(os.path.realpath(path), "") for path in whole)
    for entry in imported_from:
        real = os.path.realpath(entry)
        if not entry or not os.path.exists(real) or (real + os.sep).startswith(installed) or is_shared(real):
            continue
        if os.path.isdir(real):
            _open(found, real)
        else:
            found.whole.append(real)
    return Readable(list(dict.fromkeys([*whole, *found.whole, *DEVICES])), found.listed)


def _editable() -> list[str]:
    """Folders and files of packages that setuptools has installed as editable, by an import hook."""
    found: list[str] = []
    for finder in sys.meta_path:
        module = sys.modules.get(getattr(finder, "__module__", ""))
        mapping = getattr(module, "MAPPING", None)
        if isinstance(mapping, dict):
            found += [path for path in mapping.values() if isinstance(path, str)]
    return found


# -- the kernel's interfaces -------------------------------------------------------------------

LIBC = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 24, 38, 47
PR_SET_CHILD_SUBREAPER = 36
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION = 0x20080522


def _call(what: str, number: int, *arguments: Any) -> int:
    """A system call by its number; raises :class:`SandboxError` with ``what`` if it fails."""
    assert LIBC is not None
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = int(LIBC.syscall(ctypes.c_long(number), *wide))
    if result < 0:
        raise SandboxError(what + ": " + os.strerror(ctypes.get_errno()))
    return result


def _prctl(what: str, *arguments: int) -> None:
    assert LIBC is not None
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:5]]
    if LIBC.prctl(*padded) < 0:
        raise SandboxError(what + ": " + os.strerror(ctypes.get_errno()))


# -- Landlock ----------------------------------------------------------------------------------

LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
"""The same numbers on every architecture."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = 1 << 4, 1 << 5, 1 << 6, 1 << 7
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 1 << 8, 1 << 9, 1 << 10, 1 << 11
MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1 << 12, 1 << 13, 1 << 14, 1 << 15

READING = EXECUTE | READ_FILE | READ_DIR
WRITING = READ_FILE | WRITE_FILE | READ_DIR | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG
WRITING |= MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV


def landlock_abi() -> int:
    """The version of Landlock that the kernel has, from 1 on.

    Raises:
        SandboxError: if it has none, or it is switched off.
    """
    if sys.platform != "linux":
        raise SandboxError("Landlock: " + sys.platform + " is not Linux")
    return _call("Landlock", LANDLOCK_CREATE_RULESET, None, 0, 1)


def landlock(abi: int, readable: Readable, writable: list[str]) -> None:
    """Refuse, from here on and to every process started from here, all other use of files.

    Where the ABI has them, TCP (4), and signals and abstract sockets out of the sandbox (6), are
    refused too.
    """
    handled = (1 << 13) - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        handled |= right if abi >= since else 0
    network = 3 if abi >= 4 else 0
    scoped = 3 if abi >= 6 else 0
    attributes = struct.pack("=QQQ", handled, network, scoped)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = _call("Landlock", LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        rules = [(path, READING) for path in readable.whole] + [(path, READ_DIR) for path in readable.listed]
        rules += [("/dev/null", READ_FILE | WRITE_FILE | TRUNCATE), ("/proc/self", READING)]
        for path, rights in rules + [(path, WRITING) for path in writable]:
            _allow(ruleset, path, rights & handled)
        _prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
        _call("Landlock", LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # What is not there, or cannot be reached anyway, needs no permission.
    try:
        if not os.path.isdir(path):
            rights &= OF_A_FILE
        if rights:
            _call("Landlock: " + path, LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


# -- seccomp -----------------------------------------------------------------------------------

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column in the tables of numbers, and ``AUDIT_ARCH_*``, of each machine."""

LAST = 462
"""``mseal``: the last number that was looked at here; newer calls are answered "not implemented"."""

X32 = 0x40000000

REFUSED = {
    # The network, and anything that reaches another program.
    "socket": (41, 198), "bind": (49, 200), "connect": (42, 203), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "inotify_init": (253, None), "inotify_init1": (294, 26),
    # Other processes.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    # Namespaces, mounts, and other ways around the rules for files.
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "move_mount": (429, 429), "open_tree": (428, 428),
    "mount_setattr": (442, 442), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "quotactl": (179, 60), "quotactl_fd": (443, 443),
    # The kernel itself.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "acct": (163, 89), "iopl": (172, None),
    "ioperm": (173, None), "modify_ldt": (154, None), "vhangup": (153, 58), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "personality": (135, 92), "seccomp": (317, 277),
    "uselib": (134, None), "lookup_dcookie": (212, 18),
}  # fmt: skip
"""Calls that fail with "operation not permitted": their numbers on x86-64 and aarch64."""

ABSENT = {
    "clone3": (435, 435), "openat2": (437, 437), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_setup": (206, 0), "io_submit": (209, 2),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "statmount": (457, 457), "listmount": (458, 458),
}  # fmt: skip
"""Calls that fail with "not implemented", so that the C library falls back to older ones.

Their arguments lie in memory, where no filter can look (``clone3``, ``openat2``); or they are ways to
do other calls unseen (``io_uring``); or memory that no limit counts (``memfd``).
"""

PRETENDED = {
    "setsid": (112, 157), "setpgid": (109, 154),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
}  # fmt: skip
"""Calls that do nothing and say that they did.

No process may leave the group by which it is ended. Owners, modes and times are not Landlock's, and
what copies or unpacks files sets them without need.
"""

CLONE = (56, 220)
SIGNALS = {"kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131)}
SIGNALS.update({"rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)})
SOCKETPAIR, SENDTO, IOCTL, FCNTL, PRCTL = (53, 199), (44, 206), (16, 29), (72, 25), (157, 167)
MMAP, SETSOCKOPT, CLOSE_RANGE = (9, 222), (54, 208), (436, 436)
SENDING = ((46, 211), (307, 269))
"""``sendmsg`` and ``sendmmsg``."""
PRLIMIT, SETPRIORITY, SETAFFINITY = (302, 261), (141, 140), (203, 122)
TRUNCATE_CALL, OPEN, OPENAT = (76, 45), (2, None), (257, 56)

CLONE_FORBIDDEN = 0x7E020000 | 0x8000 | 0x2000
"""New namespaces, ``CLONE_PARENT`` (a child of the server) and ``CLONE_PTRACE``."""

CLONE_THREAD, CLONE_FILES, CLOSE_RANGE_UNSHARE = 0x00010000, 0x400, 2

TERMINAL_QUESTIONS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, TCGETS2: no other ioctl is passed on."""

F_SETSIG, F_SETOWN, F_SETOWN_EX = 10, 8, 15
PR_SET_DUMPABLE = 4
MAP_KIND, SHARED_ANONYMOUS = 0x2F, (0x21, 0x23)
"""``MAP_SHARED`` or ``MAP_SHARED_VALIDATE`` with ``MAP_ANONYMOUS``, and the bits that say so."""
BUFFER_SIZES = (7, 8, 32, 33)
"""``SO_SNDBUF``, ``SO_RCVBUF``, and the same by force."""

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, KILL, NOTIFY = 0x7FFF0000, 0x80000000, 0x7FC00000
SECCOMP_SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5


def fails(number: int) -> int:
    """The filter's answer that makes a call fail with ``number``; with 0 it seems to succeed."""
    return 0x00050000 | number


Instruction = tuple[int, int, int, int]
"""An operation, how far to jump if true and if not, and an operand."""


def program(machine: str, *, abi: int, notify: bool, counted: bool = False) -> list[Instruction]:
    """The filter: a list of ``(operation, jump if true, jump if false, operand)``.

    ``abi`` is Landlock's (0: none is in force), which decides what the filter must do in its place.
    ``notify`` says that a supervisor answers for what the kernel does not hold back itself: memory that can
    be kept without being seen, if it is not ``counted``, and signals that Landlock does not hold back.
    """
    column, architecture = MACHINES[machine]
    code: list[Instruction] = [
        (LOAD, 0, 0, 4),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, 0),
    ]
    if machine == "x86_64":
        code += [(JUMP_GREATER_EQUAL, 0, 1, X32), (RETURN, 0, 0, KILL)]
    code += [(JUMP_GREATER_EQUAL, 0, 1, LAST + 1), (RETURN, 0, 0, fails(errno.ENOSYS))]

    def answer(numbers: tuple[int | None, ...], *block: Instruction) -> None:
        number = numbers[column]
        if number is not None:
            code.extend([(JUMP_EQUAL, 0, len(block), number), *block])

    def only(numbers: tuple[int | None, ...], error: int, *wanted: tuple[int, tuple[int, ...]]) -> None:
        """Allow a call if each of these arguments is one of these values."""
        block: list[Instruction] = []
        for argument, values in wanted:
            block.append(_low(argument))
            for index, value in enumerate(values):
                block.append((JUMP_EQUAL, len(values) - index, 0, value))
            block.append((RETURN, 0, 0, fails(error)))
        answer(numbers, *block, (RETURN, 0, 0, ALLOW))

    for numbers in REFUSED.values():
        answer(numbers, (RETURN, 0, 0, fails(errno.EPERM)))
    for numbers in ABSENT.values():
        answer(numbers, (RETURN, 0, 0, fails(errno.ENOSYS)))
    for numbers in PRETENDED.values():
        answer(numbers, (RETURN, 0, 0, fails(0)))
    answer(
        CLONE,
        _low(0),
        (JUMP_ANY_BIT, 0, 1, CLONE_FORBIDDEN),
        (RETURN, 0, 0, fails(errno.EPERM)),
        # A thread whose open files are its own could keep some where nobody looks.
        (AND, 0, 0, CLONE_THREAD | CLONE_FILES),
        (JUMP_EQUAL, 0, 1, CLONE_THREAD),
        (RETURN, 0, 0, fails(errno.EPERM)),
        (RETURN, 0, 0, ALLOW),
    )
    answer(
        CLOSE_RANGE,
        _low(2),
        (JUMP_ANY_BIT, 0, 1, CLOSE_RANGE_UNSHARE),
        (RETURN, 0, 0, fails(errno.EPERM)),
        (RETURN, 0, 0, ALLOW),
    )
    if abi < 6:
        other = NOTIFY if notify else fails(errno.EPERM)
        for numbers in SIGNALS.values():
            own = (_low(0), (JUMP_EQUAL, 0, 1, os.getpid()), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, other))
            answer(numbers, *own)
    # A pair of connected streams cannot be turned to anywhere else, as datagram sockets can.
    answer(
        SOCKETPAIR,
        _low(0),
        (JUMP_EQUAL, 0, 3, int(socket.AF_UNIX)),
        _low(1),
        (AND, 0, 0, 0xF),
        (JUMP_EQUAL, 1, 0, int(socket.SOCK_STREAM)),
        (RETURN, 0, 0, fails(errno.EPERM)),
        (RETURN, 0, 0, NOTIFY if notify and not counted else ALLOW),
    )
    if not counted:
        # Pages stay for as long as a single one of them is mapped; what waits in a socket is no process's.
        unseen = NOTIFY if notify else fails(errno.ENOMEM)
        kinds = [(JUMP_EQUAL, 2 - index, 0, kind) for index, kind in enumerate(SHARED_ANONYMOUS)]
        answer(MMAP, _low(3), (AND, 0, 0, MAP_KIND), *kinds, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, unseen))
        size = [(JUMP_EQUAL, 4 - index, 0, option) for index, option in enumerate(BUFFER_SIZES)]
        answer(SETSOCKOPT, _low(2), *size, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, fails(0)))
    only(SENDTO, errno.EPERM, (4, (0,)))
    only(IOCTL, errno.ENOTTY, (1, TERMINAL_QUESTIONS))
    # A signal for a descriptor goes to whom the descriptor's owner names.
    owners = [(JUMP_EQUAL, 3 - index, 0, cmd) for index, cmd in enumerate((F_SETSIG, F_SETOWN, F_SETOWN_EX))]
    answer(FCNTL, _low(1), *owners, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, fails(errno.EPERM)))
    # The supervisor could not look into a process that makes itself private.
    hide = (JUMP_EQUAL, 0, 1, PR_SET_DUMPABLE)
    answer(PRCTL, _low(0), hide, (RETURN, 0, 0, fails(0)), (RETURN, 0, 0, ALLOW))
    only(PRLIMIT, errno.EPERM, (0, (0, os.getpid())))
    only(SETAFFINITY, errno.EPERM, (0, (0, os.getpid())))
    only(SETPRIORITY, errno.EPERM, (0, (0,)), (1, (0,)))
    if 0 < abi < 3:
        # Landlock does not know of truncation yet, not even by opening a file for reading.
        answer(TRUNCATE_CALL, (RETURN, 0, 0, fails(errno.EACCES)))
        for numbers, argument in ((OPEN, 1), (OPENAT, 2)):
            answer(
                numbers,
                _low(argument),
                (AND, 0, 0, os.O_TRUNC | os.O_ACCMODE),
                (JUMP_EQUAL, 0, 1, os.O_TRUNC | os.O_RDONLY),
                (RETURN, 0, 0, fails(errno.EACCES)),
                (RETURN, 0, 0, ALLOW),
            )
    return [*code, (RETURN, 0, 0, ALLOW)]


def _low(argument: int) -> Instruction:
    """Load the low half of an argument: all that the kernel itself reads of an ``int``."""
    return (LOAD, 0, 0, 16 + 8 * argument)


def seccomp(abi: int, supervised: bool, counted: bool = False) -> int | None:
    """Put the filter on this process; returns the descriptor on which it asks its supervisor, if it has to.

    The kernel may refuse the latter (before 5.5, in gVisor, or if an outer sandbox already answers):
    then there is none, and the supervisor only counts.
    """
    machine = platform.machine()
    if machine not in MACHINES or sys.byteorder != "little" or sys.maxsize < 1 << 32:
        raise SandboxError("seccomp: there is no filter for " + machine)
    _prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    number = REFUSED["seccomp"][MACHINES[machine][0]]
    assert number is not None
    asking = program(machine, abi=abi, notify=True, counted=counted)
    asks = supervised and any(one[0] == RETURN and one[3] == NOTIFY for one in asking)
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER) if asks else ():
        try:
            return _install(number, flags, asking)
        except SandboxError:
            continue
    _install(number, 0, program(machine, abi=abi, notify=False, counted=counted))
    return None


def _install(number: int, flags: int, code: list[Instruction]) -> int:
    _kept, header = _assembled(code)
    return _call("seccomp", number, SECCOMP_SET_MODE_FILTER, flags, header)


def _assembled(code: list[Instruction]) -> tuple[Any, Any]:
    """The instructions in memory, which must be kept until the kernel has them, and what points to them."""
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in code))
    return instructions, ctypes.create_string_buffer(
        struct.pack("@HP", len(code), ctypes.addressof(instructions))
    )


# -- all of it ---------------------------------------------------------------------------------


class Private(NamedTuple):
    """File systems of a run's own."""

    memory: int
    """Bytes of ``/dev/shm``."""
    disk: int
    """Bytes of the folder that may be written to."""
    files: int
    """Files in it."""


class Confinement(NamedTuple):
    """What a process is to be confined to."""

    level: str
    readable: Readable
    writable: str
    """The folder that may be written to."""
    private: Private | None = None
    """File systems of its own, if it is to have any; else nothing in ``/dev/shm`` can be used."""
    tasks: int = 0
    """Processes and threads that the kernel is to hold it to; 0 if it does not, or by a control group."""
    grouped: bool = False
    """Whether it is in a control group, which holds it to a number of tasks and to an amount of memory."""
    newest: int = 99
    """Use Landlock as if the kernel had no newer ABI than this."""


def confine(box: Confinement, supervised: bool = False) -> int | None:
    """Confine this process, which must have one thread only, and all that it starts, for good.

    Returns the descriptor on which a supervisor is asked, if ``supervised`` and the kernel can.

    Raises:
        SandboxError: if a part of it is not to be had; the process must then not go on.
    """
    abi = 0
    writable = [box.writable]
    if sys.platform == "linux" and box.level in (LANDLOCK, BUBBLEWRAP):
        if box.private:
            private_files(box.writable, box.private)
            writable.append(SHARED_MEMORY)
        if box.tasks:
            import resource

            resource.setrlimit(resource.RLIMIT_NPROC, (box.tasks, box.tasks))
        drop_capabilities()
        if box.level == LANDLOCK:
            abi = min(landlock_abi(), box.newest)
            landlock(abi, box.readable, writable)
        # After the capabilities: their loss takes this promise back.
        die_with_parent()
        return seccomp(abi, supervised, box.grouped)
    return None


def private_files(folder: str, sizes: Private) -> None:
    """Replace ``folder`` and ``/dev/shm``, for this process and what it starts, by empty ones in memory.

    In the latter locks and shared tensors live under names, so that no rule for files could tell those of
    other programs apart. No file can be made in a way that would escape the size of either.

    Raises:
        SandboxError: if the system allows no namespaces here.
    """
    namespaces = companion("namespaces")
    try:
        namespaces.private_files(
            {
                SHARED_MEMORY: namespaces.options(sizes.memory, namespaces.NAMES, "1777"),
                folder: namespaces.options(sizes.disk, sizes.files, "700"),
            }
        )
        os.chdir(folder)
    except OSError as error:
        raise SandboxError("namespaces: " + str(error.strerror)) from None


def drop_capabilities() -> None:
    """Give up every privilege of root, and the ways to get one back."""
    assert LIBC is not None
    number = 0
    while LIBC.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0) == 0:
        number += 1
    LIBC.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL), 0, 0, 0)
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    if LIBC.capset(header, bytes(24)):
        raise SandboxError("capabilities: " + os.strerror(ctypes.get_errno()))


def adopt_orphans() -> None:
    """Become the parent of what children leave behind, so that its end can be waited for."""
    if LIBC is not None and sys.platform == "linux":
        _prctl("PR_SET_CHILD_SUBREAPER", PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, where it can."""
    if LIBC is not None and sys.platform == "linux":
        _prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, int(signal.SIGKILL))


def hand_over(channel: socket.socket, asking: int | None, folders: Collection[str]) -> None:
    """Give the supervisor the descriptor on which it is asked, if there is one, and keep none.

    It gets one of each of the ``folders`` that are the run's own, too: it cannot look into them otherwise.
    Where there are none, no descriptor can be sent any more: a file on its way is no process's, and only the
    file system would know its size.
    """
    given = [] if asking is None else [asking]
    given += [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for folder in folders]
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))] if given else []
    channel.sendmsg([b"." if asking is None else b"+"], rights)
    channel.close()
    for one in given:
        os.close(one)
    if not folders and platform.machine() in MACHINES:
        column, _ = MACHINES[platform.machine()]
        code = [(LOAD, 0, 0, 0)]
        for numbers in SENDING:
            code += [(JUMP_EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, fails(errno.EPERM))]
        _kept, header = _assembled([*code, (RETURN, 0, 0, ALLOW)])
        _prctl("seccomp", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(header))


# -- other programs' sandboxes -------------------------------------------------------------------


def bubblewrap(readable: Readable, writable: list[str], own: list[str], memory: int) -> list[str]:
    """The command before a command that runs it in namespaces of its own, by ``bwrap``.

    ``own`` are files of gradfix that the command needs, ``memory`` the bytes of its ``/dev/shm``.
    """
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc"]
    command += ["--dev", "/dev", "--ro-bind", "/dev/null", "/dev/zero"]
    command += ["--size", str(memory), "--tmpfs", SHARED_MEMORY]
    for path in sorted({*readable.whole, *own}):
        if not path.startswith(("/dev/", "/proc/")):
            command += ["--ro-bind-try", path, path]
    for path in writable:
        command += ["--bind", path, path]
    # What was made to mount things on is in memory, where no limit counts it.
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/", "--"]


def seatbelt(readable: Readable, writable: list[str], own: list[str]) -> list[str]:
    """The command before a command that runs it under a profile of macOS's ``sandbox-exec``."""
    return ["sandbox-exec", "-p", seatbelt_profile(readable, writable, own)]


def seatbelt_profile(readable: Readable, writable: list[str], own: list[str]) -> str:
    """The profile: all is refused but what is named. Metadata (not contents) can be asked for anywhere."""

    def paths(kind: str, names: list[str]) -> str:
        both = dict.fromkeys(path for name in names for path in (name, os.path.realpath(name)))
        return "".join("\n  (" + kind + " " + json.dumps(name) + ")" for name in both)

    return "\n".join(
        [
            "(version 1)",
            "(deny default)",
            "(allow process-fork)",
            "(allow signal (target same-sandbox))",
            "(allow sysctl-read)",
            "(allow file-read-metadata)",
            "(allow ipc-posix-sem)",
            "(allow ipc-posix-shm)",
            '(allow file-read* (literal "/")' + paths("subpath", [*readable.whole, *own, *writable]) + ")",
            "(allow file-read-data" + paths("literal", [*readable.listed, *DEVICES]) + ")",
            "(allow process-exec" + paths("subpath", readable.whole) + ")",
            "(allow file-write*" + paths("subpath", writable) + ")",
            '(allow file-write-data (literal "/dev/null"))',
        ]
    )


# -- which level there is ------------------------------------------------------------------------


def tried(folder: str, canary: str) -> str | None:
    """From inside a sandbox: what it failed to refuse, or refused though it should not have."""
    try:
        with open(os.path.join(folder, "inside"), "w") as file:
            file.write("1")
    except OSError as error:
        return "it cannot write to its own folder (" + str(error) + ")"
    for flags, what in ((os.O_RDONLY, "be read"), (os.O_WRONLY, "be written")):
        try:
            os.close(os.open(canary, flags))
            return "a file outside can still " + what
        except OSError:
            pass
    for family in (socket.AF_INET, socket.AF_UNIX):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as made:
                made.settimeout(1)
                made.connect(("192.0.2.1", 9) if family == socket.AF_INET else canary)
            return "the network can still be reached"
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES, errno.ENETUNREACH, errno.ENOENT):
                return "the network is not refused (" + str(error) + ")"
    return None


def try_confining(private: Private | None = None) -> str | None:
    """Confine a process made for it with Landlock, and return why that does not hold, if so."""
    with tempfile.TemporaryDirectory(prefix="gradfix-") as temporary:
        folder = os.path.realpath(temporary)
        inside, canary = os.path.join(folder, "in"), os.path.join(folder, "canary")
        os.mkdir(inside)
        with open(canary, "w") as file:
            file.write("1")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                files = interpreter_files()
                confine(Confinement(LANDLOCK, files, inside, private))
                said = tried(inside, canary)
            except BaseException as error:
                said = str(error)
            os.write(writing, (said or "").encode()[:1000])
            os._exit(0 if said is None else 1)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        return None if status == 0 else said or f"a confined process was ended by signal {status & 0x7F}"


def describe() -> dict[str, Any]:
    """What this interpreter can have here: ``landlock`` (its ABI), ``memory`` (whether file systems of its
    own are to be had), ``held`` (what else the kernel holds), ``cgroup`` (their version, 0 for none), ``why``
    (why there is no Landlock), and the files that it needs."""
    found: dict[str, Any] = {"landlock": 0, "memory": False, "why": "", "files": interpreter_files()}
    found.update(held=[], cgroup=0)
    try:
        found["landlock"] = landlock_abi()
        why = try_confining()
        if why is not None:
            found["landlock"], found["why"] = 0, why
            return found
        found["memory"] = try_confining(Private(1 << 20, 1 << 20, 64)) is None
        namespaces = companion("namespaces")
        if namespaces.processes_held():
            found["held"].append(PROCESSES)
        if found["memory"] and namespaces.tasks_held():
            found["held"].append(TASKS)
        found["cgroup"] = companion("cgroups").available()
        if found["cgroup"]:
            found["held"].append(CGROUP)
    except SandboxError as error:
        found["why"] = str(error)
    return found


class Level(NamedTuple):
    """A level that holds here."""

    name: str
    detail: str = ""
    memory: bool = False
    """Whether a private ``/dev/shm`` is to be had, and a private folder to write to."""
    readable: Readable = Readable([], [])
    """What the interpreter needs (where a program puts each run into its sandbox)."""
    newest: int = 99
    """Use Landlock as if the kernel had no newer ABI than this."""
    held: tuple[str, ...] = ()
    """What the kernel holds besides: some of :data:`PROCESSES`, :data:`TASKS`, :data:`CGROUP`."""
    scope: tuple[str, ...] = ()
    """The command before a server's that gives it control groups to divide, if it takes one."""

    def __str__(self) -> str:
        return self.name + (" (" + self.detail + ")" if self.detail else "")

    @property
    def apart(self) -> bool:
        """Whether each run must be started within the sandbox, as a process of its own."""
        return self.name in (BUBBLEWRAP, SEATBELT)

    def command(self, readable: Readable, writable: list[str], memory: int) -> list[str]:
        """The command before a command that runs it with these files in this sandbox."""
        files = Readable(self.readable.whole + readable.whole, self.readable.listed + readable.listed)
        own = [os.path.dirname(os.path.abspath(__file__))]
        if self.name == BUBBLEWRAP:
            return bubblewrap(files, writable, own, memory)
        return seatbelt(files, writable, own) if self.name == SEATBELT else []


UNSANDBOXED = Level(RLIMITS, memory=True)


def choose(executable: str, environment: dict[str, str], within: str | None = None) -> Level:
    """The level that runs of this interpreter, started in this environment, can have on this machine.

    What is tried for that makes its files in the folder ``within``, which the caller removes.

    Raises:
        SandboxError: if there is none; the message says why.
    """
    asked = _asked([executable, os.path.abspath(__file__)], environment, within)
    abi, why = asked.get("landlock", 0), asked.get("why", "")
    if abi:
        groups = companion("cgroups")
        scope: list[str] = [] if asked.get("cgroup") else groups.scope()
        if scope:
            session = {**environment, **groups.session()}
            scoped = _asked([*scope, executable, os.path.abspath(__file__)], session, within)
            asked, scope = (scoped, scope) if scoped.get("cgroup") else (asked, [])
        held = tuple(asked.get("held", ()))
        parts = [f"Landlock ABI {abi}", f"{'private' if asked['memory'] else 'no'} shared memory"]
        parts += ["process namespace"] if PROCESSES in held else []
        parts += [f"cgroup v{asked['cgroup']}"] if CGROUP in held else []
        return Level(LANDLOCK, ", ".join(parts), asked["memory"], held=held, scope=tuple(scope))
    files = Readable(*asked.get("files", ([], [])))
    name = SEATBELT if sys.platform == "darwin" else BUBBLEWRAP
    program = "sandbox-exec" if name == SEATBELT else "bwrap"
    if sys.platform not in ("darwin", "linux"):
        raise SandboxError(sys.platform + " has none that gradfix knows")
    if shutil.which(program) is None:
        raise SandboxError((why + "; " if why else "") + "there is no " + program)
    level = Level(name, "", True, files)
    with tempfile.TemporaryDirectory(prefix="gradfix-", dir=within) as temporary:
        folder = os.path.realpath(temporary)
        os.mkdir(os.path.join(folder, "in"))
        with open(os.path.join(folder, "canary"), "w") as file:
            file.write("1")
        inside = [executable, os.path.abspath(__file__), "--inside", os.path.join(folder, "in")]
        before = level.command(Readable([], []), [inside[-1]], 1 << 20)
        wrong = _asked([*before, *inside], environment, within).get("why")
    if wrong:
        raise SandboxError("; ".join(part for part in (why, program + ": " + wrong) if part))
    return level


def _asked(command: list[str], environment: dict[str, str], within: str | None = None) -> dict[str, Any]:
    """What a process of :func:`main` answers; ``why`` says what went wrong if it does not."""
    try:
        # In a folder that nobody's modules lie in.
        with tempfile.TemporaryDirectory(prefix="gradfix-", dir=within) as folder:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
                cwd=folder,
                env={**environment, "TMPDIR": folder},
            )
        answer = json.loads(done.stdout or b"{}")
        if isinstance(answer, dict) and answer:
            return answer
        last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        last = str(error)
    return {"landlock": 0, "why": last}


def main(arguments: list[str]) -> None:
    """See the module's docstring."""
    if arguments[:1] == ["--inside"]:
        folder = arguments[1]
        try:
            confine(Confinement(BUBBLEWRAP, Readable([], []), folder))
            why = tried(folder, os.path.join(os.path.dirname(folder), "canary"))
        except SandboxError as error:
            why = str(error)
        print(json.dumps({"why": why}))
        return
    if arguments[:1] == ["--ask"]:
        # Where that cannot be had, it does without: nothing is asked that is not trusted.
        with contextlib.suppress(SandboxError):
            confine(Confinement(LANDLOCK, Readable(["/"], []), arguments[1]))
        os.execv(arguments[2], arguments[2:])
    print(json.dumps(describe()))


if __name__ == "__main__":
    # The folder of this file holds modules whose names may be those of others.
    sys.path[:] = [
        entry for entry in sys.path if os.path.abspath(entry) != os.path.dirname(os.path.abspath(__file__))
    ]
    main(sys.argv[1:])
