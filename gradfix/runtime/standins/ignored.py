"""Modules that only log or draw may be absent: whatever is asked of them does nothing and gives nothing.

What such a module gives has no values. Where one would get into a tensor, a number or a condition, the run
ends on the spot and says which module is missing.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, NoReturn

from . import context
from .schema import Schema, with_listed
from .value import unpacked

ONLY_LOG_OR_DRAW = frozenset(
    "wandb tensorboardX tensorboard tensorboard_logger torch.utils.tensorboard visdom matplotlib seaborn "
    "plotly bokeh pylab comet_ml mlflow neptune clearml trackio swanlab aim sacred crayon pycrayon "
    "livelossplot hiddenlayer torchviz graphviz torchsummary torchinfo torchsummaryX colorama termcolor "
    "prettytable loguru coloredlogs logzero icecream pynvml GPUtil IPython ipywidgets".split()
)
"""What these do has no part in what a training computes."""


def advise(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema without the module that could not be imported, if it only logs or draws."""
    if not isinstance(error, ImportError):
        return None
    # What torch says where its own part of tensorboard lacks the rest.
    parts = (error.name or ("tensorboard" if "TensorBoard" in str(error) else "")).split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        if name in ONLY_LOG_OR_DRAW:
            whole = ["torch.utils.tensorboard"] if name == "tensorboard" else []
            return with_listed(run.schema, "modules", name, *whole)
    return None


def install(run: context.StandinRun) -> None:
    """Let what the schema names be imported."""
    if run.schema.get("modules"):
        sys.meta_path.insert(0, _Finder(run, frozenset(run.schema["modules"])))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, run: context.StandinRun, names: frozenset[str]) -> None:
        self.run, self.names = run, names

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if not any(fullname == name or fullname.startswith(name + ".") for name in self.names):
            return None
        self.run.used("the module " + fullname, "nothing: it only logs or draws")
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(self.__name__ + "." + name)


class Nothing:
    """What such a module gives: it can be called, entered, asked for its parts and gone through."""

    def __init__(self, path: str = "", *others: Any, **named: Any) -> None:
        self.__dict__["_path"] = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing(f"{self._path}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # As a decorator it leaves a function as it stands.
        if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)):
            return args[0]
        return Nothing(f"{self._path}()")

    def __getitem__(self, key: Any) -> Any:
        return Nothing(f"{self._path}[]")

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __iter__(self) -> Any:
        # ``figure, axes = plt.subplots()``
        count = unpacked(sys._getframe(1))
        return iter([Nothing(f"{self._path}[]") for _ in range(count)]) if count else self._needed()

    def __eq__(self, other: object) -> Any:
        return False if other is None else self is other or self._needed()

    def __hash__(self) -> int:
        return id(self)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __repr__(self) -> str:
        return f"<nothing: {self._path}>"

    def _needed(self, *others: Any, **named: Any) -> NoReturn:
        context.run().stop(f"{self._path.partition('.')[0]} is not installed, and its values are needed")

    def __add__(self, other: Any) -> Any:
        # ``Fore.RED + text``
        return other if isinstance(other, str) else self._needed()

    __radd__ = __add__
    __bool__ = __int__ = __index__ = __float__ = __len__ = __array__ = __lt__ = __gt__ = __le__ = __ge__ = (
        _needed
    )
    __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = _needed
    __fspath__ = __contains__ = _needed

    @classmethod
    def __torch_function__(cls, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = [one for one in args if isinstance(one, Nothing)]
        (found or [Nothing("a module that is missing")])[0]._needed()
