"""Which interpreter runs the script."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that can run the script."""

    executable: str
    chosen: str
    """How it was chosen, for people."""


def choose_interpreter(path: Path, explicit: str | None = None) -> Interpreter | str:
    """The interpreter for the script at ``path``, or the reason why there is none.

    ``explicit`` wins; otherwise the first of these that has torch: a virtual environment named
    ``.venv``, ``venv`` or ``env`` beside the script or above it, the active one, gradfix's own. An
    environment that git tracks came with the code: nothing of it is started.
    """
    if explicit is not None:
        found = shutil.which(explicit)
        if found is None:
            return f"{explicit} is not an interpreter that can be run"
        return Interpreter(found, "--python") if _has_torch(found) else f"{explicit} has no torch"
    candidates = [
        Interpreter(executable, name)
        for folder in path.absolute().parents
        for name in (".venv", "venv", "env")
        for executable in [_executable(folder / name)]
        if executable and not is_tracked(str(folder / name / "pyvenv.cfg")) and not is_tracked(executable)
    ]
    active = os.environ.get("VIRTUAL_ENV")
    if active and (executable := _executable(Path(active))):
        candidates.append(Interpreter(executable, "VIRTUAL_ENV"))
    candidates.append(Interpreter(sys.executable, "gradfix's own"))
    for candidate in candidates:
        if _has_torch(candidate.executable):
            return candidate
    tried = ", ".join(dict.fromkeys(candidate.chosen for candidate in candidates))
    return f"no interpreter has torch (tried {tried}); name one with --python"


def is_tracked(path: str) -> bool:
    """Whether git has the file at ``path``, or what that is a link to: it came with the code."""
    for one in {os.path.abspath(path), os.path.realpath(path)}:
        # No program that the repository's own configuration names is started.
        command = ["git", "-c", "core.fsmonitor=false", "ls-files", "--error-unmatch", "--", one]
        with suppress(OSError, subprocess.TimeoutExpired):
            folder = os.path.dirname(one)
            found = subprocess.run(command, cwd=folder, capture_output=True, timeout=30, check=False)
            if found.returncode == 0:
                return True
    return False


def _executable(environment: Path) -> str | None:
    for name in ("bin/python", "Scripts/python.exe"):
        if (environment / name).is_file() and (environment / "pyvenv.cfg").is_file():
            return str(environment / name)
    return None


@functools.cache
def _has_torch(executable: str) -> bool:
    ask = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    try:
        return (
            subprocess.run(
                [executable, "-c", ask],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=tempfile.gettempdir(),
                timeout=60,
                check=False,
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
