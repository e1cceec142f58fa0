"""Why a run did not get far enough to compare anything, in one sentence."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from gradfix.core.codemod import Claim
from gradfix.core.errors import quoted
from gradfix.runtime.sandbox import readable
from gradfix.verify.own_modules import folder_of
from gradfix.verify.recording.records import RecordedFailure, Recording
from gradfix.verify.server import OUT_OF_TIME


def why_not(before: Recording, claim: Claim, root: Path | None = None) -> str | None:
    """One sentence on why the original did not run far enough to compare anything, if so.

    ``root`` is the folder of its project.
    """
    stopped = obstacle(before, root)
    if stopped is not None or before.crash is not None:
        return stopped
    if before.uncaught is not None and claim.raises is not None:
        return _obstacle(before.uncaught, before, root)
    if claim.raises is not None and before.ending != "finished":
        line = claim.raises_line
        if line is not None and not any(one.place.covers(line) for one in before.backwards):
            where = f"line {line}, which should raise {quoted(claim.raises)}"
            return f"the run did not reach {where} (the original {before.ran()})"
        return f"{quoted(claim.raises)} was not raised in time (the original {before.ran()})"
    return None


def obstacle(before: Recording, root: Path | None = None) -> str | None:
    """One sentence on why a run did not get to a gradient, if so; ``root`` is the folder of its project."""
    if before.ending == "trouble":
        if before.detail.startswith(("the sandbox ", "the record ", "torch cannot be imported")):
            return before.detail
        return f"gradfix's recorder failed: {before.detail.strip().splitlines()[-1]}"
    # Gradients that come of `torch.autograd.grad`, and are assigned, need no backward call.
    if before.crash is not None or before.backwards or any(step.consumes for step in before.steps):
        return None
    if before.uncaught is not None:
        return _obstacle(before.uncaught, before, root)
    if before.detail == OUT_OF_TIME:
        return OUT_OF_TIME
    if before.ending == "finished":
        return "backward() was never called"
    if before.ending == "seconds":
        return "the time was up before the first backward call"
    return f"it stopped before the first backward call: {before.detail or before.ending}"


def _obstacle(error: RecordedFailure, before: Recording, root: Path | None) -> str:
    """What a script needed and did not have, with what would supply it."""
    where = str(error.place)
    message = error.message.splitlines()[0] if error.message else ""
    if os.strerror(errno.ENOSPC) in message and error.type == "OSError":
        return f"{where} wrote more than a run may: see the limits in docs/sandbox.md"
    if error.type in ("NeedsValues", "NeedsIPython"):
        return f"{message} at {where}"
    if error.type == "ModuleNotFoundError":
        return _module_missing(error.missing or message, where, root)
    if "attempted relative import with no known parent" in message:
        return f"{where} imports from the package around it: run it as a module, with -m"
    if error.type == "FileNotFoundError":
        parts = os.path.normpath(error.missing).split(os.sep) if error.missing else []
        if any(readable.SECRET.match(part) for part in parts if part not in (os.curdir, os.pardir)):
            return f"{where} needs {error.missing}, which the sandbox withholds: hidden files and secrets"
        needed = f"the file {error.missing}, which is not there" if error.missing else f"a file: {message}"
        return f"{where} needs {needed}: put it there, or name its folder in tool.gradfix.verify.readable"
    if error.type == "SystemExit":
        return _left(where, message, before)
    if error.type == "KeyError" and VARIABLE.fullmatch(message) and "environ" in before.source:
        return f"{where} needs the variable {message} of the environment: name it in tool.gradfix.verify.env"
    if "network is off" in message:
        return f"{where} tried to reach the network, which is off in the sandbox"
    if error.type == "PermissionError" and error.missing:
        return (
            f"{where} tried to use {error.missing}, which the sandbox refuses: a run reads only the "
            "interpreter, the project (no hidden files) and the folders in tool.gradfix.verify.readable"
        )
    if "CUDA" in message or "NVIDIA" in message:
        # What torch says depends on how it was built, and on who has asked before.
        return f"{where} needs an accelerator, which verification does not use"
    if error.type == "IndexError" and "sys.argv" in _line(error, before):
        return f"{where} reads its arguments: add them after --"
    return f"{where} raised {error.type}: {message}"


def _module_missing(name: str, where: str, root: Path | None) -> str:
    """That a module cannot be imported: one of the project's own, or one that is not installed."""
    folder = folder_of(name, root) if root is not None else None
    if folder is not None:
        return (
            f"{name} is the project's own and lies in {folder}, where {where} does not look for it: run the "
            "script from there as a module, with -m, or put that folder on PYTHONPATH"
        )
    return (
        f"{name} is not installed ({where} imports it): install it where the script runs, "
        "or give --python or --env auto"
    )


def _line(error: RecordedFailure, before: Recording) -> str:
    """The line of the script at which an error came out of it."""
    lines = before.source.splitlines()
    return lines[error.place.line - 1] if error.place.line and error.place.line <= len(lines) else ""


VARIABLE = re.compile(r"'[A-Z][A-Z0-9_]*'")
REQUIRED = re.compile(
    r"error: the following arguments are required: (.+)|Missing (?:option|argument) '?([^'.]+)"
)
"""What argparse and click say where the command line lacks something."""


def _left(where: str, code: str, before: Recording) -> str:
    """Why a script has left by itself."""
    for line in before.output.splitlines():
        if (found := REQUIRED.search(line)) is not None:
            wanted = found[1] or found[2]
            return (
                f"the script requires {wanted.strip()}: add {'it' if ',' not in wanted else 'them'} after --"
            )
    printed = [line for line in before.output.splitlines() if line.strip()]
    said = f": {printed[-1].strip()}" if printed else ""
    return f"the script left at {where} with exit code {code}{said}"
