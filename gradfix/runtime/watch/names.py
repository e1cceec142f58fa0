"""What the script calls its tensors, networks and optimizers."""

from __future__ import annotations

import itertools
import os
import sys
import types
from typing import Any

from .graph import operation
from .own_code import is_own

VARIABLES = 5_000


class Variable:
    """A tensor that a name of the script holds, or an element or attribute of what it holds."""

    __slots__ = ("frame", "holder", "line", "name", "value")

    def __init__(self, name: str, value: Any, frame: types.FrameType, line: int, holder: type | None) -> None:
        self.name, self.value, self.frame, self.line = name, value, frame, line
        self.holder = holder
        """The class of the object whose attribute it is."""

    def told(self) -> dict[str, Any]:
        """Where it stands: the explanation finds its assignment there, or in the class of its object."""
        code = self.frame.f_code
        return {
            "name": self.name,
            "file": code.co_filename,
            "line": self.line,
            "function": code.co_firstlineno,
            "classes": own_classes(self.holder),
            "operation": operation(self.value.grad_fn) if self.value.grad_fn is not None else None,
            "parameter": isinstance(self.value, sys.modules["torch"].nn.Parameter),
            "view": self.value._is_view(),
        }


def own_classes(kind: type | None) -> list[tuple[str, str]]:
    """The files and names of a class and of those that it inherits from, as far as they are the user's."""
    found: list[tuple[str, str]] = []
    for one in getattr(kind, "__mro__", ()):
        file = getattr(sys.modules.get(one.__module__), "__file__", None)
        if isinstance(file, str) and is_own(file):
            found.append((os.path.abspath(file), one.__qualname__))
    return found


class Names:
    """What the script calls its tensors, networks and optimizers."""

    def __init__(self) -> None:
        self.optimizers: dict[int, str] = {}
        self.modules: dict[int, str] = {}
        """The name of each parameter by its identity."""
        self.networks: list[str] = []
        """The names of networks that are no part of others, as far as that is known when they are met."""
        self.layers: dict[int, tuple[str, Any]] = {}
        """Networks and the layers in them, by identity: the name that the script has for each, and itself."""
        self.variables: list[Variable] = []
        self.constants: set[str] = set()
        """The names of what holds nothing that requires a gradient."""

    def collect(self, frame: types.FrameType, line: int) -> None:
        scope = dict(frame.f_locals)
        if frame.f_locals is not frame.f_globals:
            scope = {
                **{name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals},
                **scope,
            }
        for name, value in scope.items():
            if not name.startswith("__"):
                known, layers = len(self.variables), len(self.layers)
                self.visit(name, value, frame, line, 3)
                new = self.variables[known:]
                data = isinstance(value, (list, tuple, dict, int, float)) or hasattr(value, "__array__")
                if data and layers == len(self.layers) and not any(one.value.requires_grad for one in new):
                    self.constants.add(name)

    def visit(
        self,
        name: str,
        value: Any,
        frame: types.FrameType,
        line: int,
        depth: int,
        holder: type | None = None,
    ) -> None:
        torch = sys.modules["torch"]
        if len(self.variables) > VARIABLES or isinstance(value, (types.ModuleType, type, types.FunctionType)):
            return
        if isinstance(value, torch.Tensor):
            self.variables.append(Variable(name, value, frame, line, holder))
        elif isinstance(value, torch.optim.Optimizer):
            self.optimizers.setdefault(id(value), name)
        elif depth and isinstance(value, (tuple, list)):
            for number, item in enumerate(itertools.islice(value, 64)):
                self.visit(f"{name}[{number}]", item, frame, line, depth - 1, holder)
        elif depth and isinstance(value, dict):
            for key, item in itertools.islice(value.items(), 64):
                self.visit(f"{name}[{key!r}]", item, frame, line, depth - 1, holder)
        else:
            if isinstance(value, torch.nn.Module) and id(value) not in self.layers:
                self.networks.append(name)
                for inner, parameter in value.named_parameters():
                    self.modules.setdefault(id(parameter), f"{name}.{inner}")
                for inner, layer in value.named_modules():
                    at = f"{name}.{inner}" if inner else name
                    self.layers.setdefault(id(layer), (at, layer))
                    for own, buffer in layer._buffers.items():
                        if buffer is not None:
                            self.variables.append(Variable(f"{at}.{own}", buffer, frame, line, type(layer)))
            attributes = getattr(value, "__dict__", None)
            if depth and isinstance(attributes, dict):
                for inner, item in itertools.islice(attributes.items(), 128):
                    if not inner.startswith("_"):
                        self.visit(f"{name}.{inner}", item, frame, line, depth - 1, type(value))
