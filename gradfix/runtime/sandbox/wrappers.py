"""Other programs' sandboxes: the commands before a command that put it into one."""

from __future__ import annotations

import json
import os

from .readable import DEVICES, SHARED_MEMORY, Readable


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
