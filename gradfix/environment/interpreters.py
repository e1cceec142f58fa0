"""What an interpreter says of itself: its version, and which modules it has."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gradfix import programs
from gradfix.environment.errors import EnvironmentFailure
from gradfix.verify import starting

_VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
_LACKING = (
    "import importlib.util, json, sys\n"
    "print(json.dumps([name for name in json.load(sys.stdin) if importlib.util.find_spec(name) is None]))"
)


def resolved(python: str | None) -> str:
    """The interpreter that an environment is made with: ``python`` if it is given, else gradfix's own.

    Raises:
        EnvironmentFailure: It is not one that can be run.
    """
    if python is None:
        return sys.executable
    found = programs.find(os.path.expanduser(python))
    if found is None:
        raise EnvironmentFailure(f"{python} is not an interpreter that can be run")
    return found


def version(python: str) -> str:
    """The version of an interpreter, as ``3.11.9``.

    Raises:
        EnvironmentFailure: It does not say.
    """
    if python == sys.executable:
        return ".".join(map(str, sys.version_info[:3]))
    said = _asked(python, _VERSION).strip()
    if not said or not said.replace(".", "").isdigit():
        raise EnvironmentFailure(f"{python} is not a Python 3 that can be run")
    return said


def lacking(python: str, modules: Sequence[str]) -> list[str]:
    """Those of some top-level modules that an interpreter does not find; it imports none of them.

    Raises:
        EnvironmentFailure: It does not say.
    """
    try:
        found = json.loads(_asked(python, _LACKING, json.dumps(list(modules))))
    except ValueError as error:
        raise EnvironmentFailure(f"{python} cannot be asked what it has") from error
    return [name for name in modules if name in found]


def modules_in(environment: Path) -> tuple[str, ...]:
    """The top-level modules that an environment supplies beside the standard library."""
    places = [*environment.glob("lib/python*/site-packages"), *environment.glob("Lib/site-packages")]
    names = {
        path.name.split(".")[0] for place in places for path in place.iterdir() if _can_be_imported(path)
    }
    return tuple(sorted(name for name in names if name.isidentifier()))


def _can_be_imported(path: Path) -> bool:
    if path.is_dir():
        return path.suffix not in (".dist-info", ".data", ".libs") and path.name != "__pycache__"
    return path.suffix in (".py", ".so", ".pyd", ".pyc")


def _asked(python: str, program: str, given: str = "") -> str:
    try:
        return starting.ask(python, program, starting.environment([Path(os.curdir)]), given)
    except starting.NoAnswer as error:
        raise EnvironmentFailure(f"{python} cannot be run: {error}") from error
