"""Runs jobs (see the package)."""

from __future__ import annotations

import json
import sys

from .. import leave_import_path
from .server import serve
from .untrusted import UntrustedInterpreter, confined


def main(arguments: list[str]) -> None:
    """Run one job, or serve jobs, as the arguments say (see the package's docstring)."""
    sys.dont_write_bytecode = True
    leave_import_path()
    if arguments[:1] == ["--serve"]:
        untrusted = UntrustedInterpreter(arguments[4], arguments[5:]) if arguments[4:] else None
        serve(int(arguments[1]), arguments[2], arguments[3].split(","), untrusted)
        return
    if arguments[:1] == ["--confined"]:
        confined(*map(int, arguments[1:]))
        return
    with open(arguments[0], encoding="utf-8") as file:
        job = json.load(file)
    from . import execution

    execution.warm()
    execution.run(job)
