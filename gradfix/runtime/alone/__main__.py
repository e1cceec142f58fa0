"""Runs a driver by hand: ``python -m gradfix.runtime alone DRIVER [KIND]``, from the project's root.

What gradfix made up in its own runs is made up here as well; nothing is recorded, and nothing confined.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from typing import Any, NoReturn

from .. import standins
from ..probe.places import Places
from ..standins import context
from . import provide


class _Telling:
    """Takes the place of the recorder of gradfix's own runs: it says what is made up."""

    pid = os.getpid()
    backwards = steps = 0

    def __init__(self) -> None:
        self.places = Places("", os.getcwd())

    def emit(self, kind: str, **what: Any) -> None:
        if kind == "standin":
            print(f"made up: {what['what']}: {what['gave']}")

    def failed(self, error: BaseException, *where: Any) -> str:
        return str(error)

    def finish(self, how: str, why: str = "") -> NoReturn:
        sys.exit(f"{how}: {why}")


def main(args: list[str]) -> None:
    """Run the driver that is named first."""
    path, *kind = args
    with open(path, encoding="utf-8") as file:
        text = file.read()
    made_up = next(
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MADE_UP"
    )
    here = os.getcwd()
    run = context.begin(
        _Telling(), {"root": here, "command": {"cwd": here}, "schema": json.dumps(made_up)}, None
    )
    standins.project.install(run)
    standins.devices.install(run)
    standins.ignored.install(run)
    provide()
    sys.argv = [path, *kind]
    exec(compile(text, path, "exec"), {"__name__": "__main__", "__file__": path})
