"""All of it together: a process confines itself."""

from __future__ import annotations

import array
import ctypes
import errno
import os
import platform
import socket
import sys
from collections.abc import Collection
from typing import NamedTuple

from . import BUBBLEWRAP, LANDLOCK, namespaces
from .kernel import SandboxError, die_with_parent, drop_capabilities, prctl
from .landlock import landlock, landlock_abi
from .readable import SHARED_MEMORY, Readable
from .seccomp import (
    ALLOW,
    JUMP_EQUAL,
    LOAD,
    MACHINES,
    PR_SET_SECCOMP,
    RETURN,
    SECCOMP_MODE_FILTER,
    SENDING,
    assembled,
    fails,
    seccomp,
)


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
        _kept, header = assembled([*code, (RETURN, 0, 0, ALLOW)])
        prctl("seccomp", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(header))
