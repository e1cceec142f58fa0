"""What a script imports, and what the modules of its project import that it reaches.

Read off the syntax trees; nothing is run. An import that the script can do without (in a ``try`` that
catches ``ImportError``, under ``TYPE_CHECKING``) does not count.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradfix.project import source

MOST_FILES = 600
"""Of a project that are read for one question; what a script needs shows in the first few."""
MOST_FOLDERS = 2000
NAMESPACES = frozenset({"google", "ruamel", "mpl_toolkits", "zope", "azure"})
"""Names that several distributions share; which one is meant, the next name says."""
SKIPPED_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__", "venv", "env"})

_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Import:
    """Something that has to be installed, or be part of the project, for a script to run."""

    module: str
    """The name that decides what supplies it: the first, and further ones where distributions share that."""
    path: Path
    """A file that imports it."""
    line: int

    @property
    def top(self) -> str:
        return self.module.split(".")[0]


@dataclass(frozen=True, slots=True)
class _Named:
    """One module named by an import statement, with the names that are taken from it."""

    module: str
    names: tuple[str, ...]
    level: int
    line: int


def reached(scripts: Sequence[Path], root: Path) -> tuple[Import, ...]:
    """What ``scripts`` and the modules of their own project import, beyond the standard library.

    ``root`` is the folder above which nothing of the project lies.
    """
    found: dict[str, Import] = {}
    seen: set[Path] = set()
    waiting = [(script.absolute(), script.absolute().parent) for script in scripts]
    while waiting and len(seen) < MOST_FILES:
        path, start = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        tree = _tree(path)
        if tree is None:
            continue
        folders = [start, *_added_folders(tree, start, root), root, root / "src"]
        for named in _named(tree):
            if named.level:
                folder = path.parents[min(named.level, len(path.parents)) - 1]
                own = _own(named, [folder]) if folder.is_relative_to(root) else []
            else:
                own = _own(named, folders)
                if not own and _is_foreign(named.module, root):
                    module = _deciding(named)
                    found.setdefault(module, Import(module, path, named.line))
            waiting += [(file, start) for file in own]
    return tuple(sorted(found.values(), key=lambda one: one.module.lower()))


def _is_foreign(module: str, root: Path) -> bool:
    """Whether a name is neither the standard library's nor, for all that can be seen, the project's."""
    from gradfix.environment.distributions import suppliers

    top = module.split(".")[0]
    if top in sys.stdlib_module_names or top in ("__main__", "__builtin__"):
        return False
    # Scripts are started with all kinds of search paths: a name that somebody has given to a module of
    # the project is that module, unless it is known to be something else.
    return bool(suppliers(module)) or top not in _names_in(root)


def _deciding(named: _Named) -> str:
    """The part of an import's name that says which distribution supplies it."""
    from gradfix.environment.distributions import SUPPLIERS

    parts = named.module.split(".")
    whole = [*parts, *named.names[:1]]
    for length in range(len(whole), 1, -1):
        # A part of torch's that only works where another distribution is installed.
        if (module := ".".join(whole[:length])) in SUPPLIERS:
            return module
    if parts[0] not in NAMESPACES:
        return parts[0]
    return ".".join([*parts, *named.names[:1]][:2])


def _tree(path: Path) -> ast.Module | None:
    try:
        return ast.parse(source.code(os.fspath(path)))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# ---------------------------------------------------------------------------- statements


def _named(tree: ast.Module) -> Iterator[_Named]:
    """The imports that a module cannot do without, in functions too."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (_Named(alias.name, (), 0, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield _Named(node.module or "", names, node.level, node.lineno)
        elif isinstance(node, ast.Try) and any(_catches_missing(handler) for handler in node.handlers):
            waiting += [*node.handlers, *node.orelse, *node.finalbody]
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.expr):
            waiting += ast.iter_child_nodes(node)


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None
        or (isinstance(kind, ast.Name) and kind.id in _MISSING)
        or (isinstance(kind, ast.Attribute) and kind.attr in _MISSING)
        for kind in kinds
    )


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


# ---------------------------------------------------------------------------- the project's own


def _own(named: _Named, folders: Sequence[Path]) -> list[Path]:
    """The project's own files that an import runs; none where it is not the project's."""
    for folder in folders:
        files = _files_of(named, folder)
        if files is not None:
            return files
    return []


def _files_of(named: _Named, folder: Path) -> list[Path] | None:
    """The files below ``folder`` that an import runs; ``None`` where what it names is not there."""
    files: list[Path] = []
    for part in named.module.split(".") if named.module else []:
        if (folder / part / "__init__.py").is_file():
            files.append(folder / part / "__init__.py")
        elif (folder / f"{part}.py").is_file():
            return [*files, folder / f"{part}.py"]
        elif not (folder / part).is_dir():
            return files or None
        folder = folder / part
    inner = [file for name in named.names for file in _module(folder, name)]
    # A folder without __init__.py is a package only if nobody else has one of that name.
    return [*files, *inner] or None


def _module(folder: Path, name: str) -> list[Path]:
    return [path for path in (folder / f"{name}.py", folder / name / "__init__.py") if path.is_file()][:1]


def _added_folders(tree: ast.Module, start: Path, root: Path) -> list[Path]:
    """The folders that a script adds to its search path outright (``sys.path.append("../lib")``)."""
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "insert", "extend")
            and isinstance(node.func.value, ast.Attribute)
            and node.func.value.attr == "path"
            and node.args
        ):
            for part in ast.walk(node.args[-1]):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    folder = Path(os.path.normpath(start / part.value))
                    if folder.is_relative_to(root):
                        found.append(folder)
    return found


@functools.lru_cache(maxsize=16)
def _names_in(root: Path) -> frozenset[str]:
    """The names of the modules and packages in a project, wherever they lie in it."""
    found: set[str] = set()
    for count, (_, folders, names) in enumerate(os.walk(root)):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith(".")]
        modules = {name.removesuffix(".py") for name in names if name.endswith(".py")}
        found |= modules | set(folders)
        if count > MOST_FOLDERS:
            break
    return frozenset(found)
