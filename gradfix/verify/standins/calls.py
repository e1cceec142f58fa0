"""Calling what a script offers: with its defaults, with what its arguments require, or not at all."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import types
from typing import Any

from . import arguments, context, sizes


def called(function: Any, **given: Any) -> Any:
    """Call a function of the script; what it requires gets a value as an argument would."""
    run = context.run()
    values = dict(given)
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return function(**values)
    for name, parameter in parameters.items():
        if name in values or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            kind = parameter.annotation if parameter.annotation in (int, float, str) else None
            text = arguments.text_for(run, name, None, kind)
            values[name] = kind(text) if kind else text
            run.used("argument " + name, repr(values[name]))
        elif (smaller := reduced_value("argument " + name, name, parameter.default)) != parameter.default:
            values[name] = smaller
    return function(**values)


def reduced_value(what: str, name: str, value: Any) -> Any:
    """A size as the run has it: reduced if it is to be small."""
    run = context.run()
    return sizes.reduced(run, what, name, value) if run.small else value


def shrink_fields(settings: Any) -> Any:
    """Reduce the sizes among the fields of a settings object, those of inner ones too."""
    for name, value in list(getattr(settings, "__dict__", {}).items()):
        if dataclasses.is_dataclass(value):
            shrink_fields(value)
        elif (smaller := reduced_value("setting " + name, name, value)) is not value:
            setattr(settings, name, smaller)
    return settings


def call_what_nobody_called(run: context.Run, main: types.ModuleType) -> None:
    """Call the training function of a script that only defines it, where its arguments have defaults."""
    if run.recorder.backwards or run.recorder.errors:
        return
    tree = run.tree(run.script)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    named = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    for node in functions:
        text = ast.unparse(node)
        function = main.__dict__.get(node.name)
        if node.name in named or ".backward(" not in text or ".step(" not in text:
            continue
        if not isinstance(function, types.FunctionType):
            continue
        if any(p.default is p.empty for p in inspect.signature(function).parameters.values()):
            continue
        run.used("a caller of " + node.name, "called with its defaults")
        called(function)
        return
