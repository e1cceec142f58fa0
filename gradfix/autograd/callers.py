"""Scripts of the same project that import a file: they know what its functions are handed.

A trainer that gets its networks, optimizers and losses as arguments says little by itself. The script that
makes them is looked for where such scripts stand: beside the file, in the folders above it, and in those
directly below these.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from gradfix.autograd import imports

LEVELS = 3
"""How many modules may stand between a script and the file: the package that passes it on, for example."""
SCRIPTS = 8
"""How many scripts are looked for."""
FOLDERS = 40
"""How many folders are looked into."""
FILES = 300
"""How many files of a folder."""
IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([^\n#]+(?:\([^)]*\))?)", re.MULTILINE)
WORD = re.compile(rb"\w+")

_words: dict[str, tuple[tuple[int, int], frozenset[bytes]]] = {}
_folders: dict[str, list[str]] = {}


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
                if importer.path in known:
                    continue
                known.add(importer.path)
                if _runs(importer.tree):
                    found.append(importer)
                    if len(found) == SCRIPTS:
                        return found
                else:
                    following.append(importer.path)
        frontier = following
    return found


def _runs(tree: ast.Module) -> bool:
    """Whether a module does something when it is run: a guard for that, or a call or loop at its top."""
    return any(
        imports.main_guard(statement)
        or isinstance(statement, (ast.For, ast.While, ast.With))
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))
        for statement in tree.body
    )


def _importers(module: str, beside: str) -> Iterator[imports.LocalModule]:
    """The modules near ``beside`` that import the one in the file ``module``."""
    folder, file = os.path.split(module)
    name = os.path.basename(folder) if file == "__init__.py" else file.removesuffix(".py")
    for place in _places(os.path.dirname(beside)):
        for path in _listed(place):
            if path != module and name.encode() in _imported_words(path):
                importer = imports.parse(path)
                if importer is not None and _imports(importer, module):
                    yield importer


def _places(folder: str) -> Iterator[str]:
    """The folder, those above it up to the project's root, and those directly below these."""
    yield folder
    seen = {folder}
    for above in _above(folder) or [folder]:
        for place in [above, *_below(above)]:
            if place not in seen and len(seen) < FOLDERS:
                seen.add(place)
                yield place


def _above(folder: str) -> list[str]:
    """The folders above one, up to the project's root, or as far as there is code if nothing marks one."""
    found: list[str] = []
    code = 0
    for _ in range(imports.LEVELS):
        if _is_root(folder):
            return found
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
        if _listed(folder) and code == len(found):
            code += 1
        found.append(folder)
    return found if found and _is_root(folder) else found[:code]


def _below(folder: str) -> list[str]:
    """The folders directly below one, but for hidden ones."""
    try:
        with os.scandir(folder) as entries:
            below = [e.path for e in entries if e.is_dir(follow_symlinks=False) and e.name[0] not in "._"]
    except OSError:
        return []
    return sorted(below)[:FOLDERS]


def _is_root(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, mark)) for mark in (".git", "setup.py", "pyproject.toml"))


def _listed(folder: str) -> list[str]:
    """The Python files of a folder, listed once."""
    known = _folders.get(folder)
    if known is None:
        try:
            with os.scandir(folder) as entries:
                known = sorted(e.path for e in entries if e.name.endswith(".py") and e.is_file())[:FILES]
        except OSError:
            known = []
        _folders[folder] = known
    return known


def _imported_words(path: str) -> frozenset[bytes]:
    """The words on the lines of a file that import something, read once."""
    try:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size)
        known = _words.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        if status.st_size > imports.LARGEST:
            return frozenset()
        with open(path, "rb") as file:
            lines = IMPORTS.findall(file.read())
    except OSError:
        return frozenset()
    words = frozenset(word for line in lines for word in WORD.findall(line))
    _words[path] = (stamp, words)
    return words


def _imports(importer: imports.LocalModule, module: str) -> bool:
    """Whether a module imports the one in the file ``module``, wherever in its code."""
    for node in ast.walk(importer.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            separator = "" if base.endswith(".") else "."
            names = [base, *(f"{base}{separator}{alias.name}" for alias in node.names)]
        if any(imports.locate(name, importer.path) == module for name in names if name.strip(".")):
            return True
    return False
