"""Which level there is on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

from .. import FOLDER, MAIN
from . import BUBBLEWRAP, CGROUP, LANDLOCK, PROCESSES, RLIMITS, SEATBELT, cgroups
from .kernel import SandboxError
from .readable import Readable
from .wrappers import bubblewrap, seatbelt


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
        own = [FOLDER]
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
    asked = _asked([executable, MAIN, "sandbox"], environment, within)
    abi, why = asked.get("landlock", 0), asked.get("why", "")
    if abi:
        scope: list[str] = [] if asked.get("cgroup") else cgroups.scope()
        if scope:
            session = {**environment, **cgroups.session()}
            scoped = _asked([*scope, executable, MAIN, "sandbox"], session, within)
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
        inside = [executable, MAIN, "sandbox", "--inside", os.path.join(folder, "in")]
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
