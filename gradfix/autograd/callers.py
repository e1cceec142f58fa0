"""Scripts of the same project that import a file: they know what its functions are handed.

A trainer that gets its networks, optimizers and losses as arguments says little by itself. The script that
makes them is looked for where such scripts stand: beside the file, in the folders above it, and in those
directly below these.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from gradfix import traces
from gradfix.autograd import imports

LEVELS = 3
"""How many modules may stand between a script and the file: the package that passes it on, for example."""
SCRIPTS = 8
"""How many scripts are looked for."""
FOLDERS = 40
"""How many folders are looked into."""
BETWEEN = 8
"""How many modules of each level are gone on from."""
IMPORTS = re.compile(
    r"^[ \t]*(from[ \t]+[.\w]+[ \t]+import[ \t]+(?:\([^)]*\)|(?:\\\r?\n|[^\n#(])+)|import[ \t]+[^\n#]+)",
    re.MULTILINE,
)
WORD = re.compile(r"\w+")
COPIED = ("setup.cfg", "requirements.txt", "environment.yml", "LICENSE", ".gitignore")
"""What marks a project's root where nothing else does."""
RUNS = re.compile(r"^(?:if +__name__|for |while |with |[A-Za-z_][\w.]*\()", re.MULTILINE)
"""What stands at the top of a module that does something when it is run: a guard for that, a loop, a call."""


class _Scanned(NamedTuple):
    """What the text of a module tells without parsing it."""

    imports: tuple[str, ...]
    """The statements that import something."""
    words: frozenset[str]
    """The words in them."""
    runs: bool
    """Whether it seems to do something when it is run."""
    clears: bool
    """Whether it clears gradients."""


NOTHING = _Scanned((), frozenset(), False, False)

_scanned: dict[str, tuple[tuple[int, int], _Scanned]] = {}


def scripts(path: str) -> list[imports.LocalModule]:
    """The scripts that import the module in ``path``, directly or through others, nearest first."""
    if any(folder in path for folder in imports.INSTALLED):
        return []
    found: list[imports.LocalModule] = []
    known = {path}
    frontier = [path]
    for _ in range(LEVELS):
        following: list[str] = []
        for module in frontier:
            for importer in _importers(module, path):
                if importer in known:
                    continue
                known.add(importer)
                if not _scan(importer).runs:
                    following.append(importer)
                elif (script := imports.parse(importer)) is not None:
                    found.append(script)
                    if len(found) == SCRIPTS:
                        return found
        frontier = following[:BETWEEN]
    return found


def clears(path: str) -> bool:
    """Whether a module that imports the one in ``path``, directly or through others, clears gradients."""
    if any(folder in path for folder in imports.INSTALLED):
        return True  # Nobody knows who imports it.
    known = {path}
    frontier = [path]
    for _ in range(LEVELS):
        importers = [i for module in frontier for i in _importers(module, path) if i not in known]
        if any(_scan(importer).clears for importer in importers):
            return True
        known.update(importers)
        frontier = importers[:BETWEEN]
    return False


def _importers(module: str, beside: str) -> Iterator[str]:
    """The modules near ``beside`` that import the one in the file ``module``."""
    folder, file = os.path.split(module)
    name = os.path.basename(folder) if file == "__init__.py" else file.removesuffix(".py")
    around = os.path.dirname(beside)
    traces.follow(beside, around)
    files = chain.from_iterable(traces.about_to_read_all(place, around) for place in _places(around))
    for path in islice(files, traces.FILES):
        if path != module and name in _scan(path).words:
            traces.follow(beside, path)
            if _imports(path, name, module):
                yield path


def _places(folder: str) -> Iterator[str]:
    """The folder, those above it up to the project's root, and those directly below these."""
    yield folder
    seen = {folder}
    for above in _above(folder) or [folder]:
        for place in [above, *_below(above, folder)]:
            if place not in seen and len(seen) < FOLDERS:
                seen.add(place)
                yield place


def _above(folder: str) -> list[str]:
    """The folders above one, up to the project's root, or as far as there is code if nothing marks one.

    Of a project that was copied without its history, the root often has a list of what it needs.
    """
    asker = folder
    found: list[str] = []
    code = 0
    for _ in range(imports.LEVELS):
        if _is_root(folder, asker):
            return found
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
        if traces.python_files(folder, asker) and code == len(found):
            code += 1
        found.append(folder)
    if found and _is_root(folder, asker):
        return found
    copied = next((number for number, above in enumerate(found, 1) if _is_root(above, asker, COPIED)), 0)
    return found[: max(code, copied)]


def _below(folder: str, asker: str) -> list[str]:
    """The folders directly below one, but for hidden ones."""
    names = [name for name in traces.folders(folder, asker) if name[0] not in "._"]
    return [os.path.join(folder, name) for name in names[:FOLDERS]]


MARKS = (".git", "setup.py", "pyproject.toml")
"""What marks a project's root."""


def _is_root(folder: str, asker: str, marks: Iterable[str] = MARKS) -> bool:
    return any(traces.exists(os.path.join(folder, mark), asker) for mark in marks)


def _scan(path: str) -> _Scanned:
    """What a file imports, read once."""
    try:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size)
        known = _scanned.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        if status.st_size > imports.LARGEST:
            return NOTHING
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            text = file.read()
    except OSError:
        return NOTHING
    statements = tuple(IMPORTS.findall(text))
    words = frozenset(word for statement in statements for word in WORD.findall(statement))
    scanned = _Scanned(statements, words, RUNS.search(text) is not None, "zero_grad" in text)
    _scanned[path] = stamp, scanned
    return scanned


def _imports(path: str, name: str, module: str) -> bool:
    """Whether a file imports the module called ``name`` in the file ``module``, wherever in its code."""
    for statement in _scan(path).imports:
        if name not in statement:
            continue
        try:
            (node,) = ast.parse(statement).body
        except (SyntaxError, ValueError):
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            separator = "" if base.endswith(".") else "."
            names = [base, *(f"{base}{separator}{alias.name}" for alias in node.names)]
        if any(imports.locate(one, path) == module for one in names if one.strip(".")):
            return True
    return False
