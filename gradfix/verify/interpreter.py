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
    environment that came with the code is not started.
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
        if executable
        and not came_with_the_code(str(folder / name / "pyvenv.cfg"))
        and not came_with_the_code(executable)
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


def came_with_the_code(path: str) -> bool:
    """Whether the file at ``path``, or what that is a link to, may have come with somebody else's code.

    It did if git has it, and it may have where a repository does not say that git has it not.
    """
    return any(_in_repository(one) for one in {os.path.abspath(path), os.path.realpath(path)})


def _in_repository(path: str) -> bool:
    root = next((above for above in reversed(Path(path).parents) if os.path.lexists(above / ".git")), None)
    if root is None:
        return False
    # The outermost repository is asked, by its name: one that was planted around the file is not looked for,
    # and no program that a configuration names is started.
    command = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}", "-c", "core.fsmonitor=false"]
    command += ["ls-files", "-z", "--", os.path.relpath(path, root)]
    with suppress(OSError, subprocess.TimeoutExpired):
        found = subprocess.run(command, cwd=root, capture_output=True, timeout=30, check=False)
        return found.returncode != 0 or found.stdout != b""
    return True


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
