"""What the sandbox is asked, or told to become, by a command (see the package)."""

from __future__ import annotations

import contextlib
import json
import os

from .. import leave_import_path
from . import BUBBLEWRAP, LANDLOCK
from .confinement import Confinement, confine
from .kernel import SandboxError
from .readable import Readable
from .trial import describe, tried


def main(arguments: list[str]) -> None:
    """See above."""
    leave_import_path()
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
