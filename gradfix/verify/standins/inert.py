"""Objects of missing modules: anything may be asked of them, nothing of them may be computed with.

An :class:`Inert` of a module that only logs, plots or shows progress (``lenient``) is as good as the
real thing. Of an unknown module it stands for values that nobody knows: it may be passed around and
printed, and it ends the run as soon as a tensor, a number or a condition needs it, or it is handed
something of the training (a network, an optimizer, a tensor with a graph) that it may have to act on.
"""

from __future__ import annotations

import abc
import ast
import builtins
import importlib
import re
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import torch

from . import context


class InertBase:
    """Stands at the end of the bases of a class that derives from something of a missing module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(type(self).__name__ + "." + name)


ENVIRONMENT = frozenset(("reset", "step", "action_space", "observation_space"))
"""What is asked of environments."""


class Inert:
    """A value of a missing module; see the module's docstring."""

    def __new__(cls, path: str = "", lenient: bool = False) -> Inert:
        made = super().__new__(cls)
        made.__dict__.update(_path=path, _lenient=lenient)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing, as for :class:`InertBase`: a class derived from it says ``Base.__init__(self, 3)``."""
        if not self._lenient and any(trains(value) for value in [*args, *kwargs.values()]):
            self._needed()

    def _child(self, suffix: str) -> Inert:
        return Inert(self._path + suffix, self._lenient)

    def _needed(self) -> NoReturn:
        parts = self._path.split("(")[0].split(".")
        made = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
        # Of a project that lacks a module, that module is said to be missing.
        module = next((name for name in made if isinstance(sys.modules.get(name), InertModule)), parts[0])
        context.run().stop(module + " is missing and its values are needed")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name in ENVIRONMENT and self._path.endswith(")") and not self._lenient:
            world = self._environment()
            return self._child("." + name) if world is self else getattr(world, name)
        return normalization(self._path + "." + name) or self._child("." + name)

    def _environment(self) -> Any:
        """The environment that it is, if it is used as one; else itself."""
        from . import worlds

        return worlds.of_inert(self) or self

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and decorates(args[0], sys._getframe(1)):
            if self._lenient:
                return args[0]
            if isinstance(args[0], type):
                self._needed()
            return Decorated(self._path + "()", args[0])
        if not self._lenient and any(trains(value) for value in [*args, *kwargs.values()]):
            self._needed()
        return self._child("()")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return based(self, bases)

    @classmethod
    def __torch_function__(cls, function: Any, classes: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in flat([args, kwargs or {}]):
            if isinstance(value, Inert):
                value._needed()
        raise AssertionError("called without an inert object")

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Inert) and instance._path.startswith(self._path)

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False

    def __getitem__(self, key: Any) -> Any:
        return self._child("[]")

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __iter__(self) -> Any:
        count = context.unpacking(sys._getframe(1))
        if count is not None:
            return iter([self._child("[]") for _ in range(count)])
        if not self._lenient:
            self._needed()
        return iter(())

    def __enter__(self) -> Any:
        return self._child(".entered")

    def __exit__(self, *error: Any) -> None:
        return None

    def __repr__(self) -> str:
        return "<stand-in of " + str(self._path) + ">"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __bool__(self) -> bool:
        return self._number(1) == 1

    def __int__(self) -> int:
        return self._number(0)

    def __index__(self) -> int:
        return self._number(0)

    def __float__(self) -> float:
        return float(self._number(0))

    def __len__(self) -> int:
        return self._number(0)

    def __contains__(self, value: object) -> bool:
        return self._number(0) == 1

    def __lt__(self, other: Any) -> bool:
        return self._number(0) == 1

    __le__ = __gt__ = __ge__ = __lt__

    def __fspath__(self) -> str:
        self._needed()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._needed()

    def _number(self, value: int) -> int:
        if not self._lenient:
            self._needed()
        return value


def under(value: Any) -> Any:
    """The function or class that decorators have wrapped, None if it is neither."""
    while isinstance(value, (staticmethod, classmethod, Decorated)):
        value = value.__wrapped__ if isinstance(value, Decorated) else value.__func__
    return value if isinstance(value, (types.FunctionType, type)) else None


def decorates(value: Any, frame: types.FrameType) -> bool:
    """Whether what ``frame`` calls with ``value`` is a decorator of it: the result gets its name."""
    own, offset = under(value), 1
    after = context.following(frame)
    # There may be others above it.
    while own is not None and after is not None and after.opname in ("PRECALL", "CALL", "CALL_FUNCTION"):
        offset += 1
        after = context.following(frame, offset)
    if own is None or after is None or not after.opname.startswith("STORE_"):
        return False
    # A private name of a class is stored with that of the class.
    return bool(after.argval == own.__name__ or (own.__name__[:2] == "__" and own.__name__ in after.argval))


class Decorated(Inert):
    """A function with the decorator of a missing module. What that makes of it nobody knows, so it ends the
    run when it is called; a project whose modules only define it runs."""

    def __new__(cls, path: str = "", function: Any = None) -> Decorated:
        made = super().__new__(cls, path)
        assert isinstance(made, Decorated)
        return made

    def __init__(self, path: str, function: Any) -> None:
        inner = under(function)
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            self.__dict__[name] = getattr(inner, name)
        # Guards look at what it would call.
        self.__dict__["__wrapped__"] = inner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._needed()


def _arithmetic(name: str) -> Any:
    def operate(self: Inert, *others: Any) -> Any:
        if any(isinstance(other, torch.Tensor) for other in others):
            self._needed()
        return self._child(name)

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"):
    for _side in ("__", "__r"):
        setattr(Inert, _side + _name + "__", _arithmetic(_side + _name + "__"))
for _name in ("__neg__", "__pos__", "__abs__", "__invert__", "__round__"):
    setattr(Inert, _name, _arithmetic(_name))


def flat(value: Any, depth: int = 4) -> list[Any]:
    """The values in nested lists, tuples and dictionaries."""
    if depth and isinstance(value, (list, tuple)):
        return [inner for item in value for inner in flat(item, depth - 1)]
    if depth and isinstance(value, dict):
        return [inner for item in value.values() for inner in flat(item, depth - 1)]
    return [value]


def trains(value: Any) -> bool:
    """Whether a value is part of the training: what is done to it changes gradients."""
    return any(
        isinstance(one, (torch.nn.Module, torch.optim.Optimizer))
        or (isinstance(one, torch.Tensor) and one.requires_grad)
        for one in flat(value)
    )


NORMALIZATION = re.compile(r"\.(?:Sync|Synchronized|Distributed)?(BatchNorm[123]d)$")
"""Layers of libraries that normalize batches over several accelerators; on one they do what torch's do."""


def normalization(path: str) -> type | None:
    """The layer of torch's that does what one of a missing module's does on one accelerator."""
    found = NORMALIZATION.search(path)
    if found is None:
        return None
    context.run().used(path, f"torch.nn.{found[1]}")
    layer: type = getattr(torch.nn, found[1])
    return layer


class InertModule(types.ModuleType):
    """A missing module, all of whose attributes are inert."""

    def __init__(self, name: str, lenient: bool) -> None:
        super().__init__(name)
        self.__dict__["_lenient"] = lenient
        self.__path__: list[str] = []
        self.__version__ = "0.0.0"

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return starred()
        if name.startswith("__"):
            raise AttributeError(name)
        return normalization(self.__name__ + "." + name) or Inert(self.__name__ + "." + name, self._lenient)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """What looks like a module may be a class: ``from nowhere import Agent``."""
        return based(self, bases)


def based(base: Any, bases: tuple[Any, ...]) -> tuple[type, ...]:
    """What a class is derived from in the place of an inert base: one class for all of these."""
    # What only says that methods are missing makes nothing of an object.
    real = any(isinstance(one, type) and one not in (abc.ABC, object) for one in bases)
    return () if real or bases[0] is not base else (InertBase,)


def starred(public: Iterable[str] = ()) -> list[str]:
    """The names that ``from it import *`` gives: what is ``public``, and what the importing file uses and
    nothing else of it binds."""
    run = context.run()
    frame = run.caller()
    if frame is None:
        raise AttributeError("__all__")
    used: set[str] = set()
    bound = {*dir(builtins), *frame.f_globals}
    for node in context.walk(run.tree(frame.f_code.co_filename)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return sorted({*public, *(used - bound)})


def library(name: str) -> Any:
    """A library that a stand-in needs: the real one, else its stand-in."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return importlib.import_module("_gradfix_standins.modules." + name)


def others(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a stand-in: its submodules, and inert objects for what it does not know."""
    name = module.partition(".modules.")[2]

    def attribute(wanted: str) -> Any:
        if wanted == "__all__":
            return starred(name for name in vars(sys.modules[module]) if not name.startswith("_"))
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        try:
            return importlib.import_module(module + "." + wanted)
        except ModuleNotFoundError:
            return Inert(name + "." + wanted)

    return attribute
