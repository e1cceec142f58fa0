"""Namespaces of Linux, in which the kernel itself bounds what a run leaves and uses.

The server gets a namespace of processes of its own (:func:`enter`): when the first process in it ends, the
kernel ends all others. Each run gets file systems of its own (:func:`private_files`), whose sizes the kernel
holds to whatever is open, mapped or on its way; and, where the user is not root, a count of tasks.

Sources: the manual pages namespaces(7), pid_namespaces(7), user_namespaces(7), tmpfs(5), getrlimit(2);
Linux 5.14 (``kernel/ucount.c``) for ``RLIMIT_NPROC`` being counted in each user namespace.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000

SHARED_MEMORY = "/dev/shm"
NAMES = 4096
"""Files in shared memory."""


def unshare(kinds: int) -> None:
    """Leave the namespaces of these kinds for new ones: with a new user namespace where it needs one.

    Raises:
        OSError: if the system does not let this process.
    """
    assert LIBC is not None
    user, group = os.getuid(), os.getgid()
    if user == 0:
        # Root in a namespace of its own could not read what others own.
        _call("unshare", LIBC.unshare(kinds))
        return
    _call("unshare", LIBC.unshare(kinds | CLONE_NEWUSER))
    maps = {"uid_map": f"{user} {user} 1", "setgroups": "deny", "gid_map": f"{group} {group} 1"}
    for name, text in maps.items():
        with open("/proc/self/" + name, "w") as file:
            file.write(text)


def enter() -> None:
    """Let the next process that this one forks be the first of a namespace of processes."""
    unshare(CLONE_NEWPID)


def mount_proc() -> None:
    """Show in ``/proc``, to the first process of such a namespace, those that are in it, and no others."""
    assert LIBC is not None
    _call("unshare", LIBC.unshare(CLONE_NEWNS))
    _mount(None, "/", None, MS_REC | MS_PRIVATE, "")
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "")


def private_files(places: dict[str, str]) -> None:
    """Mount, for this process and what it starts, an empty file system in memory on each of these folders.

    Args:
        places: By folder, the options of its ``tmpfs``.
    """
    unshare(CLONE_NEWNS)
    _mount(None, "/", None, MS_REC | MS_PRIVATE, "")
    for folder, options in places.items():
        flags = MS_NOSUID | MS_NODEV | (MS_NOEXEC if folder == SHARED_MEMORY else 0)
        _mount("tmpfs", folder, "tmpfs", flags, options)


def options(size: int, files: int, mode: str) -> str:
    """Those of a ``tmpfs`` of ``size`` bytes and ``files`` files."""
    return f"size={size},nr_inodes={files},mode={mode}"


def _mount(what: str | None, where: str, kind: str | None, flags: int, data: str) -> None:
    assert LIBC is not None
    source, filesystem = (None if one is None else one.encode() for one in (what, kind))
    made = LIBC.mount(source, os.fsencode(where), filesystem, ctypes.c_ulong(flags), data.encode() or None)
    _call("mount " + where, made)


def _call(what: str, result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, what + ": " + os.strerror(number))


# -- trials ------------------------------------------------------------------------------------


def processes_held() -> bool:
    """Whether a namespace of processes is to be had here, with a ``/proc`` of its own."""

    def first() -> bool:
        mount_proc()
        return os.getpid() == 1 and os.path.exists("/proc/1/stat")

    def trial() -> bool:
        enter()
        return _in_a_child(first)

    return _in_a_child(trial)


def tasks_held() -> bool:
    """Whether the kernel counts the tasks of a run by themselves, and holds them to a limit.

    It never does for root, and before Linux 5.14 all the user's processes count together.
    """

    def trial() -> bool:
        import resource

        unshare(CLONE_NEWNS)
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
        drop = ctypes.create_string_buffer(24)
        assert LIBC is not None
        LIBC.capset(b"\x22\x05\x08\x20\0\0\0\0", drop)  # version 3, of this process
        reading, writing = os.pipe()
        first = os.fork()
        if first == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        try:
            second = os.fork()
        except OSError as error:
            return error.errno == errno.EAGAIN
        else:
            if second == 0:
                os._exit(0)
            return False
        finally:
            os.close(writing)

    return os.name == "posix" and os.getuid() != 0 and _in_a_child(trial)


def _in_a_child(trial: Callable[[], bool]) -> bool:
    """What a function answers in a process of its own; false if that fails."""
    child = os.fork()
    if child == 0:
        held = False
        try:
            held = trial()
        finally:
            os._exit(0 if held else 1)
    return os.waitpid(child, 0)[1] == 0
