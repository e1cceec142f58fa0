"""Requirements in ``requirements*.txt``, in the syntax that pip reads.

Options are not passed on: a stranger's ``--index-url`` would say where everything comes from.
"""

from __future__ import annotations

import re
from pathlib import Path

from gradfix.environment.reading import Collected, Project, Stated

_INCLUDE = re.compile(r"(?:-r|--requirement)(?:\s+|=|(?=[^-\s]))(?P<path>.+)")
_EDITABLE = re.compile(r"(?:-e|--editable)(?:\s+|=)(?P<path>.+)")
_OPTION = re.compile(r"\s--?[A-Za-z][\w-]*(?:[ =]\S+)?")
_OTHER_PURPOSE = re.compile(
    r"(?:^|[-_.])(?:dev|develop|tests?|testing|docs?|lint|ci|build|style|check|optional)"
)
_GPU = re.compile(r"(?:gpu|cuda|cu1[0-9]+)")

MOST_INCLUDED = 30


def files_in(folder: Path) -> list[Path]:
    """Those that say what it takes to run what lies in a folder.

    ``requirements.txt`` alone where there is one. Of others, none that are for development, and none for GPUs
    where there is one beside it.
    """
    plain = folder / "requirements.txt"
    if plain.is_file():
        return [plain]
    found = [*folder.glob("*requirements*.txt"), *folder.glob("requirements/*.txt")]
    found = sorted(path for path in found if path.is_file() and not _OTHER_PURPOSE.search(path.stem))
    return [path for path in found if not _GPU.search(path.stem)] or found[:1]


def of_requirements(path: Path, project: Project) -> tuple[Stated, list[Path]]:
    """What a file and those that it includes say, and the folders that they say to install themselves."""
    stated, folders = Stated(), list[Path]()
    waiting, seen = [path], set[Path]()
    while waiting and len(seen) < MOST_INCLUDED:
        file = waiting.pop(0)
        if file.resolve() in seen:
            continue
        seen.add(file.resolve())
        collected = Collected(project.named(file))
        for line in _lines(project.text(file, collected)):
            if include := _INCLUDE.fullmatch(line):
                included = file.parent / include["path"].strip()
                if project.holds(included) and included.is_file():
                    waiting.append(included)
                else:
                    collected.leave_out(line, "there is no such file in the project")
            elif itself := _itself(line, file, project):
                folders.append(itself)
                collected.leave_out(line, "it is the project itself", matters=False)
            elif editable := _EDITABLE.fullmatch(line):
                collected.leave_out(
                    editable["path"], "only wheels from an index are installed, nothing from its source"
                )
            else:
                collected.add(line if line.startswith("-") else _OPTION.split(line)[0].strip())
        stated += collected.stated(file)
    return stated, folders


def _lines(text: str) -> list[str]:
    """The lines that say something: continued ones joined, without comments."""
    joined = re.sub(r"\\[ \t]*\r?\n", " ", text)
    lines = (re.sub(r"(?:^|\s)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def _itself(line: str, file: Path, project: Project) -> Path | None:
    """The folder that ``-e .`` names, if it lies in the project."""
    editable = _EDITABLE.fullmatch(line)
    named = (editable["path"] if editable else line).strip().split("[")[0]
    if named.startswith(".") or (editable and "://" not in named and "@" not in named):
        folder = file.parent / named
        if folder.is_dir() and project.holds(folder):
            return folder
    return None
