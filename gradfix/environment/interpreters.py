"""What an interpreter says of itself: its version, and which modules it has."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gradfix.environment.errors import EnvironmentFailure
from gradfix.system import programs
from gradfix.verify import starting, untrusted_environments

_BASE = (
    "import json, sys\n"
    "print(json.dumps(['.'.join(map(str, sys.version_info[:3])), sys.base_prefix, sys.base_exec_prefix]))"
)
_LACKING = (
    "import importlib.util, json, sys\n"
    "print(json.dumps([name for name in json.load(sys.stdin) if importlib.util.find_spec(name) is None]))"
)


class Base(NamedTuple):
    """The interpreter that an environment is made with."""

    executable: str
    version: str
    """As ``3.11.9``."""
    prefixes: tuple[str, ...]
    """Where it is installed."""


def base(python: str | None) -> Base:
    """The interpreter that an environment is made with: ``python`` if it is given, else gradfix's own.

    Raises:
        EnvironmentFailure: It is not one that can be run.
    """
    if python is None:
        version = ".".join(map(str, sys.version_info[:3]))
        return Base(sys.executable, version, untrusted_environments.bases_of_this())
    found = programs.find(os.path.expanduser(python))
    if found is None:
        raise EnvironmentFailure(f"{python} is not an interpreter that can be run")
    if untrusted_environments.environment_of(found) is not None:
        raise EnvironmentFailure(f"{python} is in an environment that gradfix has made: name one of your own")
    try:
        version, *prefixes = json.loads(_asked(found, _BASE))
    except ValueError as error:
        raise EnvironmentFailure(f"{python} is not a Python 3 that can be run") from error
    return Base(found, version, tuple(prefixes))


def lacking(python: str, modules: Sequence[str]) -> list[str]:
    """Those of some top-level modules that an interpreter does not find; it imports none of them.

    Raises:
        EnvironmentFailure: It does not say.
    """
    if (environment := untrusted_environments.environment_of(python)) is not None:
        has = {*modules_in(Path(environment.folder)), *sys.stdlib_module_names}
        return [name for name in modules if name not in has]
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
