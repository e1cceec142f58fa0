"""gin: functions and classes whose arguments a file of settings gives. Scopes are taken for one."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from ..context import run
from ..inert import others
from ..sizes import reduced_settings

_BEGIN = "__init__"
REQUIRED = object()
"""Stands for an argument that the settings have to give."""
_bindings: dict[str, dict[str, Any]] = {}
_known: dict[str, Any] = {}
_constants: dict[str, Any] = {}


def _bound(name: str) -> dict[str, Any]:
    """What the settings give to a function, by the last part of its name."""
    return _bindings.get(name.rpartition(".")[2], {})


def _filled(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function with what the settings say of the arguments that it is not given."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            names = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            names = []
        given = {*names[: len(args)], *(key for key, value in kwargs.items() if value is not REQUIRED)}
        bound = {key: _value(value) for key, value in _bound(name).items() if key not in given}
        return function(*args, **{**kwargs, **bound})

    return call


def configurable(given: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A function, or a class, whose arguments the settings may give."""
    if callable(given):
        return _register(given, given.__name__)
    return lambda made: _register(made, given or kwargs.get("name") or made.__name__)


register = configurable


def external_configurable(
    made: Any, name: str | None = None, module: str | None = None, **kwargs: Any
) -> Any:
    """The same for what others wrote, which stays as it is."""
    name = name or made.__name__
    if isinstance(made, type):
        known: Any = type(made.__name__, (made,), {_BEGIN: _filled(getattr(made, _BEGIN), name)})
    else:
        known = _filled(made, name)
    _known[name.rpartition(".")[2]] = known
    return known


def _register(made: Any, name: str) -> Any:
    if isinstance(made, type):
        setattr(made, _BEGIN, _filled(getattr(made, _BEGIN), name))
        found: Any = made
    else:
        found = _filled(made, name)
    _known[name.rpartition(".")[2]] = found
    return found


def constants_from_enum(given: Any = None, **kwargs: Any) -> Any:
    """The members of an enumeration, which settings may name."""
    if given is None:
        return constants_from_enum
    for member in given:
        _constants[given.__name__ + "." + member.name] = member
    return given


def constant(name: str, value: Any) -> None:
    """A value that settings may name."""
    _constants[name] = value


class _Reference:
    """A function, or what it gives, as settings say it: ``@name``, ``@name()``."""

    def __init__(self, name: str, called: bool) -> None:
        self.name = name
        self.called = called


class _Macro:
    """A constant, or another setting: ``%name``."""

    def __init__(self, name: str) -> None:
        self.name = name


def _value(held: Any) -> Any:
    """What a setting is when it is needed."""
    if isinstance(held, _Reference):
        found = _known.get(held.name.rpartition("/")[2].rpartition(".")[2])
        if found is None:
            raise ValueError("No configurable matching " + held.name)
        return found() if held.called else found
    if isinstance(held, _Macro):
        for name, value in _constants.items():
            if held.name == name or held.name.endswith("." + name) or name.endswith("." + held.name):
                return _value(value)
        raise ValueError("No constant matching " + held.name)
    if isinstance(held, (list, tuple)):
        return type(held)(_value(one) for one in held)
    if isinstance(held, dict):
        return {key: _value(one) for key, one in held.items()}
    return held


_MARK = "gin: "
"""Begins the text in the place of what a setting refers to."""


def _parsed(text: str) -> Any:
    """The value that a setting has in its file."""
    said: list[Any] = []

    def marked(found: Any) -> str:
        sign, name, called = found.groups()
        said.append(_Macro(name) if sign == "%" else _Reference(name, bool(called)))
        return f"'{_MARK}{len(said) - 1}'"

    text = re.sub(r"([@%])([\w./]+)(\(\))?", marked, text) if text[:1] not in "'\"" else text
    held = ast.literal_eval(text)

    def back(one: Any) -> Any:
        if isinstance(one, str) and one.startswith(_MARK):
            return said[int(one[len(_MARK) :])]
        if isinstance(one, (list, tuple)):
            return type(one)(back(inner) for inner in one)
        return {key: back(inner) for key, inner in one.items()} if isinstance(one, dict) else one

    return back(held)


def bind_parameter(name: str, value: Any) -> None:
    """Give an argument of a function."""
    function, _, argument = name.rpartition(".")
    if not function:
        _constants[argument] = value
        return
    held = reduced_settings(run(), {argument: value}) if run().small else {argument: value}
    _bindings.setdefault(function.rpartition("/")[2].rpartition(".")[2], {}).update(held)


def query_parameter(name: str) -> Any:
    """What the settings give for an argument."""
    function, _, argument = name.lstrip("%").rpartition(".")
    if not function:
        return _value(_constants[argument])
    return _value(_bound(function.rpartition("/")[2])[argument])


def parse_config(text: str | Iterable[str], *args: Any, **kwargs: Any) -> None:
    """Settings in lines: ``function.argument = value``."""
    text = text if isinstance(text, str) else "\n".join(text)
    waiting = ""
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        waiting = (waiting + " " + line.strip()).strip().rstrip("\\")
        opened = sum(waiting.count(one) for one in "([{") - sum(waiting.count(one) for one in ")]}")
        if not waiting or opened > 0 or waiting.endswith("="):
            continue
        one, waiting = waiting, ""
        if one.startswith("import "):
            importlib.import_module(one.split()[1])
        elif one.startswith("include "):
            parse_config_file(one.split(None, 1)[1].strip("'\""))
        elif "=" in one:
            name, _, value = one.partition("=")
            bind_parameter(name.strip(), _parsed(value.strip()))


def parse_config_file(path: Any, *args: Any, **kwargs: Any) -> None:
    """Settings in a file."""
    with open(path) as file:
        parse_config(file.read())


def parse_config_files_and_bindings(files: Any = (), bindings: Any = (), *args: Any, **kwargs: Any) -> None:
    """Settings in files, and some that were typed."""
    for path in [files] if isinstance(files, str) else files or ():
        parse_config_file(path)
    parse_config([bindings] if isinstance(bindings, str) else list(bindings or ()))


def operative_config_str(*args: Any, **kwargs: Any) -> str:
    """The settings in lines."""
    return "\n".join(
        f"{name}.{key} = {value!r}" for name, held in _bindings.items() for key, value in held.items()
    )


config_str = markdown = operative_config_str


def clear_config(*args: Any, **kwargs: Any) -> None:
    """No settings any more."""
    _bindings.clear()


class unlock_config:
    """Within it settings may change; they always may."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


config_scope = unlock_config


def finalize() -> None:
    """Nothing is locked."""


def add_config_file_search_path(path: str) -> None:
    """Files are found by their own paths."""


__getattr__ = others(__name__)
