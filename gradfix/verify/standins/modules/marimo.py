"""marimo: the cells of a notebook run as a script, each when the names that it takes are there."""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from .. import context
from ..inert import Inert


class Stop(Exception):
    """Raised by :func:`stop` to end a cell."""


class App:
    """A notebook: functions that take the names of other cells and return their own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.cells: list[Callable[..., Any]] = []
        self.setup = contextlib.nullcontext()

    def cell(self, *args: Any, **kwargs: Any) -> Any:
        """Add a cell."""
        if args and isinstance(args[0], types.FunctionType):
            self.cells.append(args[0])
            return args[0]
        return self.cell

    def function(self, *args: Any, **kwargs: Any) -> Any:
        """A function of the notebook is one of the module."""
        return args[0] if args else self.function

    class_definition = function

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the cells; those that take what others return run after these, whatever their order."""
        names: dict[str, Any] = {}
        waiting = list(self.cells)
        while waiting:
            ready = [one for one in waiting if set(parameters(one)) <= set(names)]
            if not ready:
                break  # They take what a cell that was stopped would have returned.
            waiting.remove(ready[0])
            try:
                found = ready[0](*(names[one] for one in parameters(ready[0])))
            except Stop:
                continue
            names.update(zip(returned(ready[0]), found if isinstance(found, tuple) else ()))
        return (), names


def parameters(cell: Callable[..., Any]) -> tuple[str, ...]:
    """The names that a cell takes."""
    code: types.CodeType = cell.__code__
    return code.co_varnames[: code.co_argcount]


def returned(cell: Callable[..., Any]) -> list[str]:
    """The names that a cell returns, by its text."""
    code: types.CodeType = cell.__code__
    for node in ast.walk(context.run().tree(code.co_filename)):
        first = [*getattr(node, "decorator_list", ()), node][0]
        if isinstance(node, ast.FunctionDef) and code.co_firstlineno in (node.lineno, first.lineno):
            last = node.body[-1]
            if isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple):
                return [ast.unparse(one) for one in last.value.elts]
    return []


def stop(predicate: Any, output: Any = None) -> None:
    """End the cell."""
    if predicate:
        raise Stop


def cache(*args: Any, **kwargs: Any) -> Any:
    """Nothing is kept: the function as it is."""
    return args[0] if args and callable(args[0]) else cache


lru_cache = persistent_cache = cache


class Element:
    """Something to set on the screen, as it stands when nobody has touched it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.value = kwargs.get("value", args[0] if args else kwargs.get("start"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert("marimo.ui." + name, lenient=True)


class Switch(Element):
    """Something that is on or off."""

    def __init__(self, *args: Any, value: bool = False, **kwargs: Any) -> None:
        self.value = value


class Pressed(Element):
    """A button that begins the work: a script has nobody to press it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.value = True


class Choice(Element):
    """One of several: the one that is chosen, else the first."""

    def __init__(self, options: Any = (), value: Any = None, **kwargs: Any) -> None:
        known = list(options)
        chosen = value if value is not None else (known[0] if known else None)
        self.value = options[chosen] if isinstance(options, dict) and chosen in options else chosen


ui = types.SimpleNamespace(
    slider=Element, number=Element, text=Element, text_area=Element, range_slider=Element, date=Element,
    checkbox=Switch, switch=Switch, dropdown=Choice, radio=Choice, run_button=Pressed, button=Pressed,
)  # fmt: skip


class Progress:
    """A bar: what it goes over, or something to be told of each step."""

    def __init__(self, collection: Any = (), *args: Any, **kwargs: Any) -> None:
        self.collection = collection

    def __iter__(self) -> Iterator[Any]:
        return iter(self.collection)

    def __enter__(self) -> Any:
        return Inert("marimo.status", lenient=True)

    def __exit__(self, *error: Any) -> None:
        pass


status = types.SimpleNamespace(progress_bar=Progress, spinner=Progress, toast=lambda *args, **kwargs: None)


def cli_args() -> dict[str, Any]:
    """None were given."""
    return {}


def running_in_notebook() -> bool:
    """It runs as a script."""
    return False


def __getattr__(name: str) -> Any:
    """Whatever is left only shows something."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Inert("marimo." + name, lenient=True)
