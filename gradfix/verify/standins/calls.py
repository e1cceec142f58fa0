"""Calling what a script offers to a command line: with its defaults, and with what its arguments require."""

from __future__ import annotations

import dataclasses
import inspect
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
