"""Finds the codemods: those that come with gradfix, those of ``--codemods DIR``, those of installed packages.

A codemod is a module with a docstring, which is its documentation, and a function
``find(program) -> Iterable[Finding]``. Its name is the name of its file, in kebab case. Modules from
folders are loaded as ``gradfix.codemods.<stem>``, whatever folder that is, so that an installation
claims no name but its own. A package offers its codemods in the entry point group
``gradfix.codemods``: the name is the codemod's, the value such a module.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import NamedTuple

import gradfix
from gradfix.core.codemod import Codemod
from gradfix.project.configuration import near_miss
from gradfix.project.source import Problem
from gradfix.system import files

PACKAGE = "gradfix.codemods"
ALL = "ALL"
"""Names all codemods."""


class Catalog(NamedTuple):
    """The codemods that there are, by name, and those that could not be loaded."""

    codemods: tuple[Codemod, ...]
    problems: tuple[Problem, ...] = ()
    folders: tuple[str, ...] = ()
    """Where those lie that did not come with gradfix."""
    installed: bool = False
    """Whether some are offered by installed packages."""

    @property
    def names(self) -> frozenset[str]:
        """The names of all codemods."""
        return frozenset(codemod.name for codemod in self.codemods)

    def get(self, name: str) -> Codemod | str:
        """The codemod called ``name``, or the sentence that says that there is none."""
        wanted = normal(name)
        return next((codemod for codemod in self.codemods if codemod.name == wanted), None) or (
            f"there is no codemod {name!r}{near_miss(wanted, self.names)} (`gradfix list` names them all)"
        )

    def select(self, select: Iterable[str], ignore: Iterable[str]) -> frozenset[str] | str:
        """The names that ``select`` names (empty: all) and ``ignore`` does not, or what is wrong with them.

        ``ALL`` names all codemods, and the first words of a name (``misplaced``) those that begin with them.
        Where both name a codemod, the longer one counts, and ``ignore`` if they are equally long.
        """
        chosen = self._named(list(select) or [ALL])
        dropped = self._named(ignore)
        if isinstance(chosen, str):
            return chosen
        if isinstance(dropped, str):
            return dropped
        return frozenset(name for name, length in chosen.items() if length > dropped.get(name, -1))

    def _named(self, selectors: Iterable[str]) -> dict[str, int] | str:
        """The codemods that are named, each with the length of the longest selector that names it."""
        found: dict[str, int] = {}
        for selector in selectors:
            wanted = normal(selector)
            everything = wanted.upper() == ALL
            matching = [
                name
                for name in self.names
                if everything or name == wanted or (wanted and name.startswith(f"{wanted}-"))
            ]
            if not matching:
                return str(self.get(selector))
            for name in matching:
                found[name] = max(found.get(name, 0), 0 if everything else len(wanted))
        return found


def normal(name: str) -> str:
    """A codemod's name in kebab case, also if it is written like its file."""
    return name.strip().replace("_", "-")


def load(folders: Sequence[str] = ()) -> Catalog:
    """All codemods: the built-in ones, those in ``folders``, and those that installed packages offer.

    One that cannot be loaded is a problem that names its file; the others are there nevertheless. The
    built-in ones are whole, and are loaded when they are needed, since with them comes the model.
    """
    problems: list[Problem] = []
    missing = [folder for folder in folders if not os.path.isdir(folder)]
    problems.extend(Problem(folder, "is not a folder of codemods") for folder in missing)
    if folders:
        sys.dont_write_bytecode = True  # They are the user's, and nothing is written beside them.
    own, others = builtin(), tuple(os.path.realpath(folder) for folder in folders if folder not in missing)
    _declare_package([own, *others])
    found = {normal(name): Codemod(normal(name), module) for name, _, module in _from_folders([own])}
    offered = tuple(_from_entry_points())
    for name, origin, module in (*_from_folders(others), *offered):
        codemod = _codemod(name, origin, module)
        if isinstance(codemod, Codemod) and codemod.name in found:
            codemod = Problem(origin, f"there is already a codemod {codemod.name!r}")
        if isinstance(codemod, Problem):
            problems.append(codemod)
        else:
            found[codemod.name] = codemod
    ordered = tuple(found[name] for name in sorted(found))
    return Catalog(ordered, tuple(problems), others, bool(offered))


_Loader = Callable[[], ModuleType]


def builtin() -> str:
    """The folder of our own codemods: inside the package in a wheel, beside it in a checkout."""
    package = os.path.dirname(os.path.realpath(gradfix.__file__))
    packaged = os.path.join(package, "codemods")
    return packaged if os.path.isdir(packaged) else os.path.join(os.path.dirname(package), "codemods")


def _declare_package(folders: list[str]) -> None:
    """Make ``gradfix.codemods`` a package that consists of ``folders``."""
    spec = ModuleSpec(PACKAGE, None, is_package=True)
    spec.submodule_search_locations = folders
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)


def _from_folders(folders: Iterable[str]) -> Iterator[tuple[str, str, _Loader]]:
    for folder in folders:
        for entry in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
            stem, extension = os.path.splitext(entry)
            if extension == ".py" and not stem.startswith("_"):
                path = os.path.join(folder, entry)
                yield stem, path, cache(partial(_module, stem, path))


def _module(stem: str, path: str) -> ModuleType:
    """The module at ``path``, loaded as ``gradfix.codemods.<stem>``."""
    name = f"{PACKAGE}.{stem}"
    loader = None if os.path.dirname(path) == builtin() else _PlainFile(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class _PlainFile(SourceFileLoader):
    """Loads a codemod that is not ours."""

    def get_data(self, path: str) -> bytes:
        return files.read(path)


def _from_entry_points() -> Iterator[tuple[str, str, _Loader]]:
    if not _some_package_offers_codemods():
        return
    from importlib.metadata import entry_points

    for point in entry_points(group=PACKAGE):
        yield point.name, f"{point.name} = {point.value}", cache(point.load)


def _some_package_offers_codemods() -> bool:
    """A quick look at what is installed: ``importlib.metadata`` takes as long to import as all of gradfix."""
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as scan:
                offers = [entry.path for entry in scan if entry.name.endswith(("-info", ".egg-info"))]
        except OSError:
            continue
        for offer in offers:
            try:
                if PACKAGE.encode() in files.read(os.path.join(offer, "entry_points.txt")):
                    return True
            except OSError:
                continue
    return False


def _codemod(name: str, origin: str, load_module: _Loader) -> Codemod | Problem:
    try:
        module = load_module()
    except files.Refused as error:
        return Problem(origin, error.message)
    except (Exception, SystemExit) as error:
        return Problem(origin, f"this codemod cannot be loaded: {type(error).__name__}: {error}")
    codemod = Codemod(normal(name), load_module)
    if not codemod.documentation:
        return Problem(origin, "this codemod has no docstring, which is its documentation")
    if not callable(getattr(module, "find", None)):
        return Problem(origin, "this codemod has no function find(program)")
    return codemod
