"""Scripts of the same project that import a file: they know what its functions are handed.

A trainer that gets its networks, optimizers and losses as arguments says little by itself. The script that
makes them is looked for where such scripts stand: beside the file, in the folders above it, and in those
directly below these.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from gradfix.autograd import imports
from gradfix.project import traces
from gradfix.project.scanning import scan

LEVELS = 3
"""How many modules may stand between a script and the file: the package that passes it on, for example."""
SCRIPTS = 8
"""How many scripts are looked for."""
FOLDERS = 40
"""How many folders are looked into."""
BETWEEN = 8
"""How many modules of each level are gone on from."""
COPIED = ("setup.cfg", "requirements.txt", "environment.yml", "LICENSE", ".gitignore")
"""What marks a project's root where nothing else does."""


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
                if not scan(importer).runs:
                    following.append(importer)
                elif (script := _parsed(importer, path)) is not None:
                    found.append(script)
                    if len(found) == SCRIPTS:
                        return found
        frontier = following[:BETWEEN]
    return found


def _parsed(script: str, path: str) -> imports.LocalModule | None:
    """A script that the module in ``path`` is run from."""
    traces.follow(path, script)
    return imports.parse(script)


def clears(path: str) -> bool:
    """Whether a module that imports the one in ``path``, directly or through others, clears gradients."""
    if any(folder in path for folder in imports.INSTALLED):
        return True  # Nobody knows who imports it.
    known = {path}
    frontier = [path]
    for _ in range(LEVELS):
        importers = [i for module in frontier for i in _importers(module, path) if i not in known]
        if any(scan(importer).clears for importer in importers):
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
    files = chain.from_iterable(traces.about_to_scan(place, around) for place in _places(around))
    for path in islice(files, traces.FILES):
        if path != module and name in scan(path).words and _imports(path, name, module, beside):
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


def _imports(path: str, name: str, module: str, beside: str) -> bool:
    """Whether a file imports the module called ``name`` in the file ``module``, wherever in its code.

    It is ``beside`` that wants to know.
    """
    for statement in scan(path).imports:
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
        if any(imports.locate(one, path, beside) == module for one in names if one.strip(".")):
            return True
    return False
