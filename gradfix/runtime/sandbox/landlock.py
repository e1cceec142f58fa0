"""Landlock: which files a process may use."""

from __future__ import annotations

import os
import struct
import sys

from .kernel import PR_SET_NO_NEW_PRIVS, SandboxError, call, prctl
from .readable import Readable

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
    return call("Landlock", LANDLOCK_CREATE_RULESET, None, 0, 1)


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
    ruleset = call("Landlock", LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        rules = [(path, READING) for path in readable.whole] + [(path, READ_DIR) for path in readable.listed]
        rules += [("/dev/null", READ_FILE | WRITE_FILE | TRUNCATE), ("/proc/self", READING)]
        for path, rights in rules + [(path, WRITING) for path in writable]:
            _allow(ruleset, path, rights & handled)
        prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
        call("Landlock", LANDLOCK_RESTRICT_SELF, ruleset, 0)
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
            call("Landlock: " + path, LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)
