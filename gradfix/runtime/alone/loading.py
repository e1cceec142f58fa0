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
from . import planted
from .given import Given, has_graph, is_unused, returned, trained

TRIES = 40
"""How many imports of one statement may be absent."""
NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


def load(path: str) -> types.ModuleType:
    """The file at ``path``, from the project's root, as a module."""
    run = context.run()
    root = os.path.realpath(run.root)
    absolute = run.job.get("path") or os.path.join(root, path)
    sys.path[:0] = [one for one in (os.path.dirname(absolute), root) if one not in sys.path]
    name = os.path.splitext(path)[0].replace("/", ".")
    sys.meta_path.insert(0, _Finder())
    _Loading.now = True
    if "source" in run.job:
        importlib.import_module("..probe.execution", __package__).imported_as(
            absolute, run.job["source"], run.job["watched"]
        )
    _import_package(name.rpartition(".")[0])
    module = sys.modules.get(name) or _loaded(name, absolute)
    module.__dict__["__planted__"] = planted
    _Loading.now = False
    if run.recorder.backwards or run.recorder.steps:
        run.stop(f"{path} trains when it is imported")
    return module


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
    _taken_as_tensors()
    for statement in tree.body:
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


def _execute(statement: ast.stmt, module: types.ModuleType, path: str) -> None:
    """Execute one statement; what it cannot have is absent, and if it fails what it binds is made up."""
    code = compile(ast.Module([statement], []), path, "exec", dont_inherit=True)
    for _ in range(TRIES):
        try:
            exec(code, module.__dict__)
            return
        except ImportError as error:
            if not _is_absent_now(error):
                break
        except (Exception, SystemExit):
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
    _Finder.names.add(error.name)
    if error.name == "tensorboard":
        _Finder.names.add("torch.utils.tensorboard")  # Torch's own part of it lacks the rest.
    only_logs = _only_logs(error.name)
    context.run().used(
        f"the module {error.name}", "nothing: " + ("it only logs or draws" if only_logs else "not installed")
    )
    return True


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
