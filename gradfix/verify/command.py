"""How the user runs a script: its arguments, the working directory, what it may read; and its project."""

from __future__ import annotations

import ast
import functools
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradfix.project import source

SECRET = re.compile(
    r"TOKEN|SECRET|PASS|CREDENTIAL|PRIVATE|KEY|AUTH|GPG|SSH|DATABASE|DB_|DSN|(?:^|_)PAT(?:$|_)|(?:^|_)PWD?(?:$|_)",
    re.IGNORECASE,
)
"""Names of variables that are not passed on, whatever a configuration says: it may come with the code."""


@dataclass(frozen=True, slots=True)
class Command:
    """How a script is started. By default with no arguments, in the current directory if that lies in the
    script's project, and in the script's own folder otherwise; a notebook always in its own."""

    args: tuple[str, ...] = ()
    module: str | None = None
    """The name that ``python -m`` is given, where that is how it is started."""
    entry: Path | None = None
    """The script that is started, where that is another one, which imports the file under test."""
    cwd: Path | None = None
    """The working directory."""
    readable: tuple[Path, ...] = ()
    """Folders outside the project that the run may read: data."""
    env: tuple[str, ...] = ()
    """Names of variables of the user's environment that the run gets."""
    driver: str = ""
    """The text that runs in the place of :attr:`entry`, which need not exist: it calls a step alone."""

    rewritten: tuple[tuple[str, str], ...] = ()
    """Other files of the project, by their real paths, each with the text that is imported in its place."""

    def payload(self, path: Path) -> dict[str, Any]:
        """The command as the probe reads it, for the file at the absolute ``path``."""
        return {
            "entry": str(path if self.entry is None else self.entry.absolute()),
            "driver": self.driver,
            "module": self.module,
            "args": list(self.args),
            "cwd": os.path.realpath(self.working_directory(path)),
            "readable": [str(folder) for folder in self.readable],
            "env": self.variables(),
            "rewritten": dict(self.rewritten),
        }

    def variables(self) -> dict[str, str]:
        """The variables of the user's environment that the run gets."""
        wanted = [name for name in self.env if name in os.environ and not SECRET.search(name)]
        return {name: os.environ[name] for name in wanted}

    def working_directory(self, path: Path) -> Path:
        """The folder that relative paths count from in a run of the file at ``path``."""
        if self.cwd is not None:
            return self.cwd.absolute()
        if source.is_notebook(str(path)):
            return path.absolute().parent  # As Jupyter has it.
        here, root = Path.cwd(), project_root(path)
        return here if here.is_relative_to(root) else path.absolute().parent


PLAIN = Command()
"""The script alone, with no arguments."""


class CommandError(ValueError):
    """A command cannot be understood; the message says why."""


PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?(?:\.exe)?")


def parse(text: str, folder: Path) -> Command:
    """The command that ``text`` says, as one types it in ``folder``: ``python train.py --epochs 1``.

    Raises:
        CommandError: if it starts anything but a script or a module of Python.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CommandError(f"{text!r} is no command: {error}") from None
    if not words or not PYTHON.fullmatch(words[0]):
        raise CommandError(f"{text!r} is not `python SCRIPT ...` or `python -m MODULE ...`")
    words = words[1:]
    while words and words[0] in ("-u", "-O", "-B", "-s"):
        words = words[1:]
    if words[:1] == ["-m"] and len(words) > 1:
        return of_module(words[1], folder, words[2:])
    if not words or words[0].startswith("-"):
        raise CommandError(f"{text!r} names no script")
    entry = folder / words[0]
    if not entry.is_file():
        raise CommandError(f"{text!r}: there is no file {entry}")
    if source.is_notebook(words[0]):
        raise CommandError(f"{text!r}: Python runs no notebooks")
    return Command(tuple(words[1:]), entry=entry)


def of_module(name: str, folder: Path, args: Iterable[str] = ()) -> Command:
    """The command ``python -m name`` in ``folder``.

    Raises:
        CommandError: if there is no such module below that folder.
    """
    parts = folder.joinpath(*name.split("."))
    for file in (parts.with_suffix(".py"), parts / "__main__.py"):
        if file.is_file():
            return Command(tuple(args), module=name, entry=file, cwd=folder)
    hint = "; a script is named without -m" if (folder / name).is_file() else ""
    raise CommandError(f"there is no module {name} in {folder}{hint}")


# -- the project ------------------------------------------------------------------------------

NEEDED = "requirements.txt"


def project_root(path: Path) -> Path:
    """The project that a script belongs to: the nearest folder above it that says so, else its own."""
    # What came without its history may have no more than a licence or a description at its root.
    for markers in (
        (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", NEEDED),
        ("LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING"),
        # Folders within a project have these of their own.
        (".gitignore",),
        ("README.md", "README.rst", "README.txt", "README"),
    ):
        held = [one for one in path.absolute().parents if any((one / marker).exists() for marker in markers)]
        if held and "README.md" in markers:
            # One part of a project may say of itself what it is, and use what lies beside it.
            return next((one for one in held[:2] if _has_imported(path.absolute(), one)), held[0])
        if held:
            # What an example needs may be listed beside it: its project is the one that it imports.
            begins = [one for one in held if any((one / m).exists() for m in markers if m != NEEDED)]
            outer = begins[0] if begins and NEEDED in markers else held[0]
            return outer if _holds_package(path.absolute(), held[0], outer) else held[0]
    return _holds_what_is_imported(path.absolute()) or path.absolute().parent


@functools.lru_cache(maxsize=64)
def _imported(text: bytes) -> list[str]:
    """The modules that a script names in its imports; a verification asks many times."""
    nodes = list(ast.walk(ast.parse(text)))
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return names + [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]


def _has_imported(path: Path, folder: Path) -> bool:
    """Whether every module of a project's that a script imports lies beside the script or in a folder.

    What is in neither is taken for a library's, if it is not in the folder above either.
    """
    try:
        names = {name.split(".")[0] for name in _imported(source.code(os.fspath(path)))}
    except (OSError, SyntaxError, ValueError):
        return True
    above = folder.parent
    return not any(
        (above / (name + ".py")).is_file()
        and not any(
            (one / name).is_dir() or (one / (name + ".py")).is_file() for one in (path.parent, folder)
        )
        for name in names
        if name
    )


def _holds_package(path: Path, inner: Path, outer: Path) -> bool:
    """Whether a script imports a package of the ``outer`` folder, which ``inner`` lacks."""
    try:
        names = {name.split(".")[0] for name in _imported(source.code(os.fspath(path)))} - {""}
    except (OSError, SyntaxError, ValueError):
        return False
    return any(
        (outer / name / "__init__.py").is_file()
        and not any((one / name).is_dir() or (one / f"{name}.py").is_file() for one in (path.parent, inner))
        for name in names
    )


ABOVE = 3
"""Folders above a script's own that are looked at for what it imports."""


def _holds_what_is_imported(path: Path) -> Path | None:
    """The nearest folder above a script's own that has a module in a folder that the script imports.

    ``from data.pictures import Pictures`` in ``scripts/train.py`` says that the project is where
    ``data/pictures.py`` is. Only for imports of a part of a package: a ``utils.py`` is everywhere.
    """
    try:
        names = _imported(source.code(os.fspath(path)))
    except (OSError, SyntaxError, ValueError):
        return None
    parts = [Path(*name.split(".")[:2]) for name in names if "." in name]
    beside = path.parent
    wanted = [part for part in parts if not (beside / part.parts[0]).exists()]
    for folder in list(beside.parents)[:ABOVE]:
        if folder in (Path.home(), Path(folder.anchor)):
            return None
        if any((folder / part).with_suffix(".py").is_file() or (folder / part).is_dir() for part in wanted):
            return folder
    return None
