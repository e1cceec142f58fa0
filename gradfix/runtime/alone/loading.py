"""The file under test, as a module, although its program cannot run.

It is executed statement by statement. What it cannot import is *absent*: it can be named, called and
derived from while the file is loaded, and stops the run where the step needs it. A statement that fails
leaves what it binds made up; loops and calls of the file's own functions at its top are its program, which
nobody asked for.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import re
import sys
import types
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from ..probe import coverage
from ..standins import context, ignored
from ..standins.value import settled
from . import bygone, gaps, planted
from .given import Given, has_graph, is_unused, returned, trained

TRIES = 40
"""How many imports of one statement may be absent."""
NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


def load(path: str) -> types.ModuleType:
    """The file at ``path``, from the project's root, as a module."""
    run = context.run()
    absolute = run.job.get("path") or os.path.join(os.path.realpath(run.root), path)
    begin(absolute)
    name = os.path.splitext(path)[0].replace("/", ".")
    _Loading.now = True
    _import_package(name.rpartition(".")[0])
    module = sys.modules.get(name) or _loaded(name, absolute)
    module.__dict__["__planted__"] = planted
    for name in run.schema.get("globals", ()):
        if name not in module.__dict__:
            module.__dict__[name] = Given(name)  # The program sets it before.
    _Loading.now = False
    if run.recorder.backwards or run.recorder.steps:
        run.stop(f"{path} trains when it is imported")
    return module


def begin(path: str) -> None:
    """Let the file at ``path`` be loaded: with the text under test, and without what is absent."""
    run = context.run()
    sys.path[:0] = [one for one in (os.path.dirname(path), os.path.realpath(run.root)) if one not in sys.path]
    _Finder.names.update(run.schema.get("absent", ()))
    sys.meta_path.insert(0, _Finder())
    if "source" in run.job:
        importlib.import_module("..probe.execution", __package__).imported_as(
            run.job["path"], run.job["source"], run.job["watched"]
        )
    gaps.install(run)
    bygone.install()
    _taken_as_tensors()
    os.mkdir = _with_parents(os.mkdir)


def _with_parents(real: Any) -> Any:
    """``os.mkdir``, which makes what is missing above as well: names of folders may tell the time of day."""

    def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
        above = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(above):
            mkdir(above)
        real(path, *args, **kwargs)

    return mkdir


def _import_package(name: str) -> None:
    """Import the package that a file lies in, if it can be: it may import the file itself."""
    for _ in range(TRIES if name.replace(".", "").isidentifier() else 0):
        try:
            importlib.import_module(name)
            return
        except ImportError as error:
            if not _is_absent_now(error):
                return
        except (Exception, SystemExit):
            return


def _loaded(name: str, absolute: str) -> types.ModuleType:
    """A file as a module, executed statement by statement."""
    run = context.run()
    module = types.ModuleType(name)
    module.__file__ = absolute
    module.__package__ = name.rpartition(".")[0]
    module.__dict__["__planted__"] = planted
    sys.modules[name] = module
    source: str = run.job.get("source") or _text(absolute)
    linecache.cache[absolute] = (len(source), None, source.splitlines(True), absolute)
    tree = coverage.marked(source, absolute, run.job.get("watched", ()))
    own = {
        one.name
        for one in tree.body
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    for statement in gaps.filled(run, absolute, tree).body:
        if not _is_program(statement, own):
            _execute(statement, module, absolute)
    return module


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _taken_as_tensors() -> None:
    """Let data loaders, and variables of old, take what is handed in as they take tensors."""
    from torch.utils.data._utils.collate import default_collate_fn_map

    def collated(batch: list[Given], **how: Any) -> Any:
        caller = sys._getframe(2)
        if caller.f_code.co_name == "collate":  # A part of a sample, whose other parts are real.
            return torch.stack([one._tensor() for one in batch])
        whole = Given(batch[0]._place, batch[0]._number_of)
        whole._rows = len(batch)
        return whole

    default_collate_fn_map[Given] = collated

    holder: Any = torch.autograd
    real: Any = holder.Variable

    class Variable(metaclass=type(real)):  # type: ignore[metaclass]
        """As torch has it, of what is handed in as well."""

        def __new__(cls, data: Any = None, *args: Any, **kwargs: Any) -> Any:
            return real(settled(data), *args, **kwargs)

    holder.Variable = Variable
    for name in ("FloatTensor", "DoubleTensor", "LongTensor", "IntTensor", "BoolTensor", "ByteTensor"):
        _constructor_of_old(name)
    for owner in (torch.Tensor, torch.nn.Module):
        _naming_types(owner, "type")
    _naming_types(torch, "set_default_tensor_type")


class _TypeOfOld(type):
    """A type of tensors as ``torch.FloatTensor`` is one, whose constructor takes what is handed in."""

    real: Any

    def __instancecheck__(cls, held: Any) -> bool:
        return isinstance(held, cls.real)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Given):
            return args[0]._tensor().to(cls.real.dtype)
        if args and isinstance(args[0], (list, tuple)) and any(isinstance(one, Given) for one in args[0]):
            return torch.stack([settled(one) for one in args[0]]).to(cls.real.dtype)
        return cls.real(*args, **kwargs)


def _constructor_of_old(name: str) -> None:
    setattr(torch, name, _TypeOfOld(name, (), {"real": getattr(torch, name)}))


def _naming_types(owner: Any, name: str) -> None:
    """Let a function take such a type by its name."""
    real = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        return real(*(one.real if isinstance(one, _TypeOfOld) else one for one in args), **kwargs)

    setattr(owner, name, call)


class _Loading:
    now = False
    """Whether the file is being loaded."""


def _is_program(statement: ast.stmt, own: set[str]) -> bool:
    """Whether a statement at the top runs the program, and does not define a part of it."""
    if isinstance(statement, (ast.For, ast.While, ast.With)):
        return True
    if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(statement.value, ast.Call):
        return False
    name = statement.value.func
    return isinstance(statement, ast.Expr) and isinstance(name, ast.Name) and name.id in own


def _execute(statement: ast.stmt, module: types.ModuleType, path: str, only_imports: bool = False) -> None:
    """Execute one statement; what it cannot have is absent, and if it fails what it binds is made up.

    Args:
        only_imports: Whether that holds for what is imported alone.
    """
    code = compile(ast.Module([statement], []), path, "exec", dont_inherit=True)
    for _ in range(TRIES):
        try:
            exec(code, module.__dict__)
            return
        except ImportError as error:
            if only_imports and not isinstance(statement, (ast.Import, ast.ImportFrom)):
                raise
            if not _is_absent_now(error):
                break
        except (Exception, SystemExit):
            if only_imports:
                raise
            break
    run = context.run()
    for name in _bound(statement):
        if name not in module.__dict__:
            imported = isinstance(statement, (ast.Import, ast.ImportFrom))
            within = f"{getattr(statement, 'module', None) or ''}.".lstrip(".")
            module.__dict__[name] = Absent(within + name) if imported else Given(name)
            run.used(name, f"made up, for line {statement.lineno} fails")


def _is_absent_now(error: ImportError) -> bool:
    """Note what could not be imported; whether that was not known before."""
    found = NOT_THERE.search(str(error))
    if found and (holder := sys.modules.get(found[2])) is not None and not hasattr(holder, found[1]):
        setattr(holder, found[1], Absent(f"{found[2]}.{found[1]}"))
        context.run().used(f"{found[2]}.{found[1]}", "nothing: it is not there any more")
        return True
    if not error.name or error.name in _Finder.names or not isinstance(error, ModuleNotFoundError):
        return False
    if (folder := _own_folder(error.name)) is not None:
        sys.path.append(folder)
        return True
    _Finder.names.add(error.name)
    if error.name == "tensorboard":
        _Finder.names.add("torch.utils.tensorboard")  # Torch's own part of it lacks the rest.
    only_logs = _only_logs(error.name)
    context.run().used(
        f"the module {error.name}", "nothing: " + ("it only logs or draws" if only_logs else "not installed")
    )
    return True


def _own_folder(name: str) -> str | None:
    """The folder of the project, not yet looked into, in which its own module of this name lies."""
    top = name.partition(".")[0]
    root = os.path.realpath(context.run().root)
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(one for one in inner if not one.startswith("."))
        if folder not in sys.path and (top + ".py" in files or top in inner):
            return folder
        if folder.count(os.sep) - root.count(os.sep) >= DEPTH:
            inner.clear()
    return None


DEPTH = 3
"""How deep below its root a project is looked through for its own modules."""


def _only_logs(path: str) -> bool:
    """Whether a module, or what it holds, is there to log or to draw."""
    parts = path.split(".")
    return any(".".join(parts[:count]) in ignored.ONLY_LOG_OR_DRAW for count in range(1, len(parts) + 1))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return  # What is not defined is missed where it is used.
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    names: ClassVar[set[str]] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if not any(fullname == name or fullname.startswith(name + ".") for name in self.names):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return _AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _AbsentModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")


class Absent(ignored.Nothing):
    """Something of a module that is not installed: the step may name it, log with it, and not more."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)):
            return args[0]
        if (known := returned(sys._getframe(1))) is not None:
            return known
        logs = _only_logs(self._path)
        if _Loading.now or logs:
            return Absent(f"{self._path}()")
        if has_graph((args, kwargs)) or trained((args, kwargs)):
            self._needed()
        # What is computed of data, and of no network, is data.
        turn = self.__dict__["_calls"] = self.__dict__.get("_calls", 0) + 1
        return None if is_unused(sys._getframe(1)) else Given(f"{self._path}()", turn)

    def __getitem__(self, key: Any) -> Any:
        return Absent(f"{self._path}[]")
