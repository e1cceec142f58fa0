"""How an interpreter of the user's is started: where nobody else's modules can take the place of its own.

Python is not started in isolated mode (``-I``): it would not find what is installed for the user alone
(``pip install --user``) or on ``PYTHONPATH`` (as clusters do), torch for one. What isolated mode keeps out is
kept out here: the current folder is private and empty, and folders of the code that ``PYTHONPATH`` names are
for the code alone, in the sandbox.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from gradfix import runtime
from gradfix.system import programs, scratch

PASSED_ON = frozenset(
    "HOME USER LOGNAME TZ PYTHONHOME VIRTUAL_ENV CONDA_PREFIX "
    "LANG LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME "
    "SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT TEMP TMP USERPROFILE "
    "NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE".split()
)
"""The user's variables that an interpreter and a script may see."""
FOLDERS = ("PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Those that name folders of what is loaded into it: see :func:`environment`."""
SECONDS = 60.0
"""Until an interpreter that is asked something has answered."""


_APART = [sys.executable, "-I", "-S", runtime.MAIN, "sandbox", "--ask"] if sys.platform == "linux" else []


def apart(folder: str | os.PathLike[str], command: list[str]) -> list[str]:
    """The command that runs ``command`` so that it writes to ``folder`` alone, and reaches no network, where
    the kernel has Landlock; ``command`` has to name its program by an absolute path."""
    return [*_APART, os.fspath(folder), *command] if _APART else command


class NoAnswer(Exception):
    """An interpreter does not answer in time."""


def environment(code: Collection[Path] = ()) -> dict[str, str]:
    """The variables that an interpreter is started with: of the user's, those that programs need to start.

    Folders that are searched for programs, libraries and modules are the absolute ones that are neither the
    current folder nor in the projects ``code``: nothing of those is to be loaded outside the sandbox.
    """
    kept = {name: value for name, value in os.environ.items() if name.upper() in PASSED_ON}
    kept["PATH"] = programs.search_path()
    for name in FOLDERS:
        if folders := [folder for folder in folders_in(name) if _is_elsewhere(folder, code)]:
            kept[name] = os.pathsep.join(folders)
    return kept


def folders_in(name: str, base: str | None = None) -> list[str]:
    """The folders that a variable names: the absolute ones, or all, with relative ones below ``base``."""
    value = os.environ.get(name, "")
    folders = value.split(os.pathsep) if value else []
    if base is None:
        return [folder for folder in folders if os.path.isabs(folder)]
    return [os.path.normpath(os.path.join(base, folder)) for folder in folders]


def _is_elsewhere(folder: str, code: Collection[Path]) -> bool:
    real = Path(os.path.realpath(folder))
    try:
        here = Path(os.path.realpath(os.getcwd()))
    except OSError:  # It has been removed.
        here = None
    return real != here and not any(real.is_relative_to(os.path.realpath(root)) for root in code)


def ask(executable: str, program: str, variables: Mapping[str, str], given: str = "") -> str:
    """What an interpreter, in an :func:`environment`, prints for a program that is ``given`` some input.

    On Linux it can write to a folder of its own only, from its start, where the kernel has Landlock.

    Raises:
        NoAnswer: if it does not end in time.
    """
    with scratch.folder() as outer:
        (folder := outer / "empty").mkdir(0o700)
        try:
            done = subprocess.run(
                apart(folder, [executable, "-c", program]),
                input=given,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                cwd=folder,
                env={**variables, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"},
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoAnswer(str(error)) from error
    return done.stdout
