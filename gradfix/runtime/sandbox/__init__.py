"""The sandbox that a watched run is in: what the kernel refuses to the user's code.

It needs the standard library only. gradfix imports it too, to choose a level; and it can be started::

    sandbox                     prints as JSON what this interpreter can have on this machine
    sandbox --inside F          tries, inside another sandbox that leaves folder F writable, what must be
                                refused there, and prints that as JSON
    sandbox --ask F COMMAND...  becomes a command that may read everything and write to folder F alone, and
                                has no network, as far as the kernel has Landlock

A level is one of

``landlock+seccomp``
    Linux on x86-64 and aarch64. The process confines itself after it was forked and before any of
    the user's code runs (``confinement.py``): Landlock for files, a seccomp filter for everything that
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

LANDLOCK = "landlock+seccomp"
BUBBLEWRAP = "bubblewrap+seccomp"
SEATBELT = "sandbox-exec"
RLIMITS = "rlimits only"

PROCESSES, TASKS, CGROUP = "processes", "tasks", "cgroup"
"""What the kernel may hold of a server and its runs, besides: a namespace of processes, the number of tasks
of a run, and control groups for their number and for memory."""
