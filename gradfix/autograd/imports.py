"""Modules of the same project that a file imports: its networks, losses and helpers.

They are parsed on demand and executed for what they define. So that nothing of theirs is ever taken for a
place in the file at hand, their lines are numbered far below zero, each file in a range of its own: a
finding, a note or an edit there has no span that exists, and is dropped.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from gradfix.autograd.relevance import Relevance
from gradfix.autograd.run import Run
from gradfix.autograd.values import (
    Frame,
    ImportedName,
    Instance,
    Mapping,
    Module,
    Namespace,
    Optimizer,
    Sequence,
    Tensor,
    Value,
)
from gradfix.core.syntax import shift, walk
from gradfix.project import scanning, traces
from gradfix.system import files

RANGE = 1_000_000
"""Lines set apart for each imported file."""
LARGEST = scanning.LARGEST
"""Bytes of a module that is still followed."""
LEVELS = 4
"""How many folders above a file may be where its project's imports start."""

MODULES = 48
"""How many modules of the project are followed from one file."""
KEPT = 4_000_000
"""Characters of parsed modules that are kept for the files that come: as trees, some 120 MB."""
INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
"""An installed package is not the project of whoever looks at it."""

FOREIGN = frozenset("torch numpy torchvision tqdm matplotlib scipy cv2 PIL gym learn2learn".split())
"""What is known, or of no interest, without its code."""
EXECUTED = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.If,
    ast.Try,
)
"""What is executed of an imported module: what defines names."""


@dataclass(eq=False)
class LocalModule:
    """A parsed module of the project."""

    path: str
    tree: ast.Module
    relevance: Relevance
    frame: Frame | None = None
    """Its variables, if they hold no state that a run could change, nor what comes from such state."""


class Lazy(ImportedName):
    """A name, or a whole module, of the project that nobody has used yet; until then nothing is parsed."""

    __slots__ = ("member", "module", "origin", "resolving")

    def __init__(self, module: str, member: str, origin: str) -> None:
        super().__init__(f"{module}.{member}" if member else module)
        self.module = module
        self.member = member
        self.origin = origin
        self.resolving = False

    def resolve(self, run: Run) -> Value:
        """What the name stands for; something external if it cannot be found."""
        if self.resolving:  # a package that imports a name from itself
            return ImportedName(self.name)
        self.resolving = True
        if self.member:
            value = member(run, self.module, self.member, self.origin)
        else:
            path = locate(self.module, self.origin)
            value = namespace(run, path) if path is not None else None
        self.resolving = False
        return value if value is not None else ImportedName(self.name)


_parsed: dict[str, tuple[tuple[int, int], LocalModule | None]] = {}
_numbered: dict[int, LocalModule] = {}
"""The modules by the thousands of thousands in the numbers of their lines."""
_ranges = 0
_kept = 0
"""How many characters the parsed modules have."""


def begin(path: str) -> None:
    """Another file is looked at: folders may hold other files by now, and room is made for its modules.

    All modules go at once: those that share what one of them defines stay together. So does what all of them
    have bound, if they have had the file itself for a module: what comes from the file at hand stands in it.
    """
    locate.cache_clear()
    _trains.cache_clear()
    _, mine = _parsed.get(os.path.abspath(path), ((0, 0), None))
    if mine is not None and mine.frame is not None:
        for _, module in _parsed.values():
            if module is not None:
                module.frame = None
    if _kept > KEPT:
        forget()


def forget() -> None:
    """Let go of all modules, and of what they have bound: some hold other code by now, or take much room."""
    global _kept
    _parsed.clear()
    _numbered.clear()
    _filled.cache_clear()
    _added.cache_clear()
    _kept = 0


@cache
def locate(module: str, origin: str, asker: str | None = None) -> str | None:
    """The file of a module as imported from the file ``origin``: leading dots count packages upwards.

    Another file may be the ``asker``.
    """
    name = module.lstrip(".")
    level = len(module) - len(name)
    top = name.split(".", 1)[0]
    if not level and (top in FOREIGN or top in sys.stdlib_module_names):
        return None
    if any(folder in origin for folder in INSTALLED):
        return None
    asker = _asker(origin) if asker is None else asker
    folder = os.path.dirname(os.path.abspath(origin))
    if level:
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        roots = [folder]
    else:
        roots = [folder]
        for _ in range(LEVELS):
            if traces.exists(os.path.join(folder, ".git"), asker):
                break
            folder = os.path.dirname(folder)
            roots.append(folder)
    below = name.replace(".", os.sep)
    initial = os.path.join(folder, "__init__.py")
    if not level and top == os.path.basename(folder) and traces.is_file(initial, asker):
        del roots[0]  # a module of a package means the package, not what is in it by the same name
    found = _below(roots, below, asker)
    if found is None and not level:
        traces.follow(asker, _path_of(origin))
        found = _below(_added(origin, tuple(roots)), below, asker)
    return found


def _asker(origin: str) -> str:
    """Under what is noted what the file ``origin`` makes us look for."""
    return os.path.abspath(origin) if origin else ""


def _path_of(origin: str) -> str:
    """Under what is noted what the file ``origin`` adds to its path of imports."""
    return f"{_asker(origin)} path"


def _below(roots: Iterable[str], below: str, asker: str) -> str | None:
    """The file of the module or package that is called ``below`` in one of several folders."""
    for root in roots:
        found = traces.module(os.path.join(root, below) if below else root, asker)
        if found is not None:
            return found
    return None


ADDED = re.compile(rb"^[ \t]*sys\.path\.(?:append|insert)\(([^\n]*)", re.MULTILINE)
JOINED = re.compile(rb"\bjoin\(([^\n]*)")
IMPORTED = re.compile(rb"^(?:import|from) (\w+)", re.MULTILINE)
SMALL = 4096
"""Bytes of a module that may be there to add folders and for nothing else, as ``_init_paths`` is."""
LITERAL = re.compile(rb"""["']([\w./ -]+)["']""")


@lru_cache(maxsize=256)
def _added(origin: str, roots: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that a file adds to its path of imports, as they are written: below its own or above."""
    asker = _path_of(origin)
    traces.about_to_read(_asker(origin), asker)
    try:
        text = files.read(origin)
    except OSError:
        return ()
    lines = ADDED.findall(text)
    for name in IMPORTED.findall(text):
        path = os.path.join(os.path.dirname(_asker(origin)), name.decode() + ".py")
        traces.about_to_read(path, asker)
        with contextlib.suppress(OSError):
            if b"sys.path" in (added := files.read(path, SMALL)):
                lines += [*ADDED.findall(added), *JOINED.findall(added)]
    written = [os.path.join(*map(bytes.decode, parts)) for parts in map(LITERAL.findall, lines) if parts]
    relative = [name for name in written if not os.path.isabs(name)]
    places = [os.path.normpath(os.path.join(root, name)) for name in relative for root in roots]
    return tuple(
        place for place in dict.fromkeys(places) if place not in roots and traces.is_folder(place, asker)
    )


def _parsed_as_written(text: str) -> ast.Module:
    """The tree of a module; also of one from before ``async`` was a keyword: ``tensor.cuda(async=True)``."""
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.parse(text, feature_version=(3, 6))


def parse(path: str) -> LocalModule | None:
    """The module in a file, parsed once; None if it cannot be read or parsed, or is too large."""
    global _ranges, _kept
    traces.about_to_read(path, path)
    try:
        stamp = files.stamp(path)
        known = _parsed.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        text = files.read(path, LARGEST).decode("utf-8-sig") if stamp[1] <= LARGEST else None
        tree = _parsed_as_written(text) if text is not None else None
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    module = None
    if tree is not None and text is not None:
        _ranges += 1
        offset = -_ranges * RANGE
        shift(tree, offset)
        module = LocalModule(path, tree, Relevance(tree, text, offset))
        _numbered[_ranges] = module
        _kept += len(text)
    _parsed[path] = (stamp, module)
    return module


def place_of(line: int) -> tuple[str, int] | None:
    """The file and the line in it of what has this line in the tree of an imported module."""
    module = _numbered.get(-(line // RANGE))
    return None if module is None else (module.path, line % RANGE)


def joined(run: Run, definition: ast.AST) -> None:
    """Take in the lines of the module that a function stands in, before it is run.

    It may have been loaded when another file was looked at, by a module that all files share since.
    """
    number = -(definition.lineno // RANGE)  # type: ignore[attr-defined]
    if number not in run.modules_run:
        run.modules_run.add(number)
        module = _numbered.get(number)
        if module is not None:
            _join(run, module)


def _join(run: Run, module: LocalModule) -> None:
    run.relevance.join(module.path, module.relevance)
    if run.top is not run.globals:
        # Between a script and the file at hand, a module may run what differentiates there in a loop.
        run.relevance.join_caller(module.path, module.relevance)


def load(run: Run, path: str) -> Frame | None:
    """The variables of a module of the project, as far as its definitions go."""
    traces.loading(path)
    known = run.modules.get(path)
    if known is not None or len(run.modules) >= MODULES:
        run.passing += known is None or not known.shared
        return known
    module = parse(path)
    if module is None:
        return None
    _join(run, module)
    if module.frame is not None:
        run.modules[path] = module.frame
        return module.frame
    frame = Frame(None, None)
    frame.origin = path
    frame.variables["__name__"] = ImportedName(os.path.basename(path))
    run.modules[path] = frame
    made = len(run.nodes), len(run.optimizers), run.passing
    body: list[ast.stmt] = [s for s in module.tree.body if isinstance(s, EXECUTED) and not main_guard(s)]
    with traces.on_behalf_of(path):
        run.execute_block(body, frame)
    for name in _filled(module.tree):
        filled = frame.variables.get(name)
        if isinstance(filled, (Sequence, Mapping)):
            filled.open = True
    held = frame.variables.values()
    # A list that one run fills must not be full in the next one.
    stateful = any(isinstance(v, (Module, Optimizer, Tensor, Instance, Sequence, Mapping)) for v in held)
    if not stateful and made == (len(run.nodes), len(run.optimizers), run.passing):
        module.frame = frame
        frame.shared = True
    else:
        run.passing += 1
    return frame


@lru_cache(maxsize=256)
def _filled(tree: ast.Module) -> tuple[str, ...]:
    """The variables of an imported module into which statements put something that are not executed."""
    others = (s for s in tree.body if not isinstance(s, EXECUTED))
    found: dict[str, None] = {}
    for node in (node for statement in others for node in walk(statement)):
        if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)) or (
            isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        ):
            if isinstance(node.value, ast.Name):
                found[node.value.id] = None
    return tuple(found)


def settled(run: Run, frame: Frame, name: str, lazy: Lazy) -> Value:
    """What an imported name of a frame stands for.

    A frame that all runs have keeps it only if it is the same for all: not if it comes from the file at
    hand, or from a module with a state of its own.
    """
    if not frame.shared:
        value = frame.variables[name] = lazy.resolve(run)
        return value
    known = run.passed.get(lazy)
    if known is not None:
        run.passing += 1
        return known
    before = run.passing
    with traces.on_behalf_of(_asker(frame.origin)):
        value = lazy.resolve(run)
    if run.passing == before:
        frame.variables[name] = value
    else:
        run.passed[lazy] = value
    return value


def main_guard(statement: ast.stmt) -> bool:
    """Whether a statement asks if the module is the script that is run."""
    return isinstance(statement, ast.If) and any(
        isinstance(n, ast.Name) and n.id == "__name__" for n in walk(statement.test)
    )


def member(run: Run, module: str, name: str, origin: str) -> Value | None:
    """What ``from module import name`` binds, if it is of the project."""
    path = locate(module, origin)
    if path is not None:
        frame = load(run, path)
        held = frame.variables.get(name) if frame is not None else None
        if isinstance(held, Lazy):
            assert frame is not None
            # A package that imports from itself means a module in it.
            held = settled(run, frame, name, held) if not held.resolving else None
        if held is not None:
            return held
    separator = "" if module.endswith(".") else "."
    inner = locate(f"{module}{separator}{name}", origin)
    return namespace(run, inner) if inner is not None else None


def outermost(module: str, origin: str) -> Namespace | None:
    """What ``import package.module`` binds, if the package is a folder of the project and no more."""
    inner = locate(module, origin)
    if inner is None:
        return None
    levels = module.count(".") + inner.endswith("__init__.py")
    return bare_package(str(Path(inner).parents[levels - 1]), origin)


def bare_package(path: str, origin: str) -> Namespace | None:
    """A package without ``__init__.py``, as imported from the file ``origin``: the modules in a folder."""
    if not traces.is_folder(path, _asker(origin)):
        return None
    frame = Frame(None, None)
    frame.origin = os.path.join(path, "__init__.py")
    traces.follow(_asker(origin), frame.origin)
    return Namespace(frame)


def trains(path: str) -> bool:
    """Whether a module may differentiate something: then its functions matter where they are called."""
    traces.reading(path)
    return _trains(path)


@cache
def _trains(path: str) -> bool:
    try:
        return b"backward" in files.read(path)
    except OSError:
        return False


def namespace(run: Run, path: str) -> Namespace | None:
    """A module of the project as a value."""
    frame = load(run, path)
    return Namespace(frame) if frame is not None else None


def origin_of(frame: Frame) -> str:
    """The file that the code of a frame stands in."""
    at: Frame | None = frame
    while at is not None:
        if at.origin:
            return at.origin
        at = at.parent
    return ""
