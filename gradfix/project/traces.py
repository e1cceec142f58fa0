"""Traces of what an analysis read from the file system, to tell later whether its result is still valid.

The analysis of a file reads others: the modules that it imports, the scripts that import it. What it finds
depends on them, and on those that it looked for in vain. Each such question is noted with its answer (a
*verifying trace*, as build systems call it), under the file or folder on whose behalf it was asked. What one
file asks serves all that come to it: its imports are followed once for them all.

Everything that the analysis learns from the file system has to be noted here. A note is taken before the file
is read: where it changes in between, the trace holds the older answer and no longer fits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from gradfix.project.scanning import LARGEST, scan
from gradfix.system import files

FILES = 1000
"""How many files are looked into for one module, at most."""

IS_FILE, IS_FOLDER, EXISTS = "file", "folder", "exists"
MODULE = "module"
"""Whether there is a module or a package, at a path without an ending: the ending, or nothing."""
CONTENT = "content"
"""What a file holds."""
NAMES = "names"
"""The Python files of a folder."""
SOURCES = "sources"
"""The Python files of a folder, and what they hold: the answer is that, and how it answers :data:`SCANS`."""
SCANS = "told"
"""The Python files of a folder, and what they tell without being parsed, which seldom changes."""
FOLDERS = "folders"
"""The folders in a folder."""

Answer = bool | str
_Said = TypeVar("_Said", bool, str)
Question = tuple[str, str]
"""What is asked, and the path of which."""

CHANGED = "changed"
"""What has been answered in two ways: no answer that is given later is this one."""
ENDINGS = (".py", f"{os.sep}__init__.py")

_asked: dict[str, dict[Question, Answer]] = {}
_followed: dict[str, set[str]] = {}
_lines: dict[str, tuple[int, bytes]] = {}
"""The lines of traces, and how much they hold of what was asked."""
_behalf = [""]
"""The file that is analysed, and within it the modules that are loaded for it and for others to come."""
_answers: dict[Question, Answer] = {}


class _Listing(NamedTuple):
    """What is in a folder, by name and in order."""

    files: list[str]
    """Python files."""
    folders: list[str]
    """Folders, but for links to some."""


_listings: dict[str, _Listing] = {}


def is_file(path: str, asker: str) -> bool:
    """:func:`os.path.isfile`, noted."""
    return _noted((IS_FILE, path), os.path.isfile(path), asker)


def is_folder(path: str, asker: str) -> bool:
    """:func:`os.path.isdir`, noted."""
    return _noted((IS_FOLDER, path), os.path.isdir(path), asker)


def exists(path: str, asker: str) -> bool:
    """:func:`os.path.exists`, noted."""
    return _noted((EXISTS, path), os.path.exists(path), asker)


def module(path: str, asker: str) -> str | None:
    """The file of the module or package that would be at ``path``; noted."""
    ending = _noted((MODULE, path), _ending(path), asker)
    return f"{path}{ending}" if ending else None


def about_to_read(path: str, asker: str) -> None:
    """Note what a file holds, of which :data:`~gradfix.project.scanning.LARGEST` bytes are going to be
    read."""
    _note((CONTENT, path), asker)


def python_files(folder: str, asker: str) -> list[str]:
    """The paths of the Python files in a folder, in order; noted."""
    _note((NAMES, folder), asker)
    return [os.path.join(folder, name) for name in _listing(folder).files]


def about_to_scan(folder: str, asker: str) -> list[str]:
    """The paths of the Python files in a folder, up to :data:`FILES` of which will be scanned; noted."""
    asked = _asked.setdefault(asker, {})
    if (SOURCES, folder) not in asked:
        asked[SOURCES, folder] = f"{_answer((SOURCES, folder))} {_answer((SCANS, folder))}"
    return [os.path.join(folder, name) for name in _listing(folder).files]


def folders(folder: str, asker: str) -> list[str]:
    """The names of the folders in a folder, in order; noted."""
    _note((FOLDERS, folder), asker)
    return _listing(folder).folders


def follow(asker: str, path: str) -> None:
    """Note that what is asked on behalf of ``path``, ever, matters to ``asker``."""
    _followed.setdefault(asker, set()).add(path)


@contextmanager
def on_behalf_of(path: str) -> Iterator[None]:
    """What is loaded within matters to the file at ``path``."""
    _behalf.append(path)
    try:
        yield
    finally:
        _behalf.pop()


def loading(path: str) -> None:
    """Note that the result under way depends on the module in the file ``path``."""
    follow(_behalf[-1], path)


def reading(path: str) -> None:
    """Note that the result under way depends on the content of a file that is about to be read."""
    about_to_read(path, _behalf[-1])


def led_to(path: str) -> set[str]:
    """All files and folders on whose behalf something was asked that matters to the file at ``path``."""
    seen: set[str] = set()
    todo = [path]
    while todo:
        led = _followed.get(todo.pop(), set()) - seen
        seen |= led
        todo += led
    return seen


def trace(path: str) -> list[bytes]:
    """What has been asked up to now on behalf of a file, and of all that it led to, and the answers.

    There is a line for each file and folder on whose behalf something was asked.
    """
    # Code of which nobody knows where it stands is looked for from nowhere.
    askers = {"", path} | led_to("") | led_to(path)
    return [_line(asker) for asker in sorted(askers) if asker in _asked]


def _line(asker: str) -> bytes:
    """All that has been asked on behalf of a file or folder, by folder: what was asked about which names."""
    asked = _asked[asker]
    count = -1 if CHANGED in asked.values() else len(asked)
    known = _lines.get(asker)
    if known is None or known[0] != count:
        folders: dict[str, dict[tuple[str, Answer], list[str]]] = {}
        for (kind, path), answer in asked.items():
            folder, name = os.path.split(path)
            folders.setdefault(folder, {}).setdefault((kind, answer), []).append(name)
        line = json.dumps({at: [[*what, *names] for what, names in of.items()] for at, of in folders.items()})
        known = _lines[asker] = count, line.encode()
    return known[1]


def holds(line: bytes) -> bool:
    """Whether the file system still gives the answers in a line of a trace.

    Raises ``ValueError``, ``TypeError`` or ``AttributeError`` for what is none.
    """
    return all(
        _still(kind, os.path.join(folder, name), answer)
        for folder, groups in json.loads(line).items()
        for kind, answer, *names in groups
        for name in names
    )


def _still(kind: str, path: str, answer: Answer) -> bool:
    if kind != SOURCES:
        return answer == _answer((kind, path))
    # To look at bytes takes less time, and mostly they are the same.
    held, scanned = str(answer).split(" ")
    return held == _answer((SOURCES, path)) or scanned == _answer((SCANS, path))


def look_again() -> None:
    """Forget what the file system looks like now; what was asked, and answered, stays."""
    _answers.clear()
    _listings.clear()


def _noted(question: Question, answer: _Said, asker: str) -> _Said:
    asked = _asked.setdefault(asker, {})
    if asked.setdefault(question, answer) != answer:
        asked[question] = CHANGED
    return answer


def _note(question: Question, asker: str) -> None:
    asked = _asked.setdefault(asker, {})
    if question not in asked:
        asked[question] = _answer(question)


def _answer(question: Question) -> Answer:
    """What the file system answers; asked once."""
    known = _answers.get(question)
    if known is None:
        kind, path = question
        known = _answers[question] = _ASK[kind](path)
    return known


def _ending(path: str) -> str:
    return next((ending for ending in ENDINGS if os.path.isfile(f"{path}{ending}")), "")


def _content(path: str) -> str:
    held = read(path, LARGEST + 1)
    return "" if held is None else digest(held)


def _of_names(folder: str) -> str:
    return digest(*map(os.fsencode, _listing(folder).files))


def _sources(folder: str) -> str:
    names = _listing(folder).files
    held = [str(_answer((CONTENT, os.path.join(folder, name)))) for name in names[:FILES]]
    return digest(*map(os.fsencode, names), *map(str.encode, held))


def _digest_of_scans(folder: str) -> str:
    names = _listing(folder).files
    scanned = [scan(os.path.join(folder, name)) for name in names[:FILES]]
    parts = (str((one.imports, one.runs, one.clears)).encode() for one in scanned)
    return digest(*map(os.fsencode, names), *parts)


def _of_folders(folder: str) -> str:
    return digest(*map(os.fsencode, _listing(folder).folders))


_ASK: dict[str, Callable[[str], Answer]] = {
    IS_FILE: os.path.isfile,
    IS_FOLDER: os.path.isdir,
    EXISTS: os.path.exists,
    MODULE: _ending,
    CONTENT: _content,
    NAMES: _of_names,
    SOURCES: _sources,
    SCANS: _digest_of_scans,
    FOLDERS: _of_folders,
}


def _listing(folder: str) -> _Listing:
    """What is in a folder; nothing if it cannot be listed. Looked for once."""
    known = _listings.get(folder)
    if known is None:
        try:
            with os.scandir(folder) as scan:
                entries = list(scan)
        except OSError:
            entries = []
        known = _listings[folder] = _Listing(
            sorted(entry.name for entry in entries if entry.name.endswith(".py") and entry.is_file()),
            sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False)),
        )
    return known


def digest(*parts: bytes) -> str:
    """A name for these bytes that no others have."""
    hashed = blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.hexdigest()


def read(path: str, limit: int) -> bytes | None:
    """The first ``limit`` bytes of the regular file at ``path``; ``None`` if it cannot be read."""
    try:
        descriptor, status = files.open_regular(path)
    except (OSError, ValueError):
        return None
    try:
        return os.read(descriptor, min(status.st_size, limit))
    except OSError:
        return None
    finally:
        os.close(descriptor)
