"""The kernel's interfaces by which a process gives up what it may do."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from typing import Any


class SandboxError(Exception):
    """The sandbox cannot be set up; the message says which part of it, and why."""


LIBC = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 24, 38, 47
PR_SET_CHILD_SUBREAPER = 36
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION = 0x20080522


def call(what: str, number: int, *arguments: Any) -> int:
    """A system call by its number; raises :class:`SandboxError` with ``what`` if it fails."""
    assert LIBC is not None
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = int(LIBC.syscall(ctypes.c_long(number), *wide))
    if result < 0:
        raise SandboxError(what + ": " + os.strerror(ctypes.get_errno()))
    return result


def prctl(what: str, *arguments: int) -> None:
    assert LIBC is not None
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:5]]
    if LIBC.prctl(*padded) < 0:
        raise SandboxError(what + ": " + os.strerror(ctypes.get_errno()))


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
        prctl("PR_SET_CHILD_SUBREAPER", PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, where it can."""
    if LIBC is not None and sys.platform == "linux":
        prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, int(signal.SIGKILL))
