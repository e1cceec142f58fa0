"""Flags are what they are when nothing is said on the command line."""

from __future__ import annotations

import sys
from typing import Any

from ... import commands
from ...arguments import TRAINING
from ...calls import reduced_value
from ...context import run


class FlagValues:
    """All flags by name."""

    def __call__(self, argv: Any = None, *args: Any, **kwargs: Any) -> Any:
        return argv or sys.argv[:1]

    def flag_values_dict(self) -> dict[str, Any]:
        """All flags."""
        return dict(self.__dict__)

    def flags_into_string(self) -> str:
        """All flags as text."""
        return repr(self.__dict__)

    def append_flags_into_file(self, path: str) -> None:
        """Nothing is written."""

    def mark_as_parsed(self) -> None:
        """They are."""

    def is_parsed(self) -> bool:
        """They are."""
        return True

    def give(self, name: str, value: Any) -> None:
        """Set a flag."""
        self.__dict__[name] = value

    def __getitem__(self, name: str) -> Holder:
        return Holder(name)

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Any:
        return iter(self.__dict__)


FLAGS = FlagValues()


class Holder:
    """One flag."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.present = True

    @property
    def value(self) -> Any:
        """What it is now."""
        return getattr(FLAGS, self.name)

    @property
    def default(self) -> Any:
        """What it is now."""
        return self.value


def DEFINE(name: str, default: Any = None, *args: Any, **kwargs: Any) -> Holder:
    """Define a flag."""
    if default is False and TRAINING.match(name):
        run().used("argument " + name, "True")
        default = True
    setattr(FLAGS, name, reduced_value("argument " + name, name, default))
    return Holder(name)


DEFINE_string = DEFINE_integer = DEFINE_float = DEFINE_bool = DEFINE_boolean = DEFINE_list = DEFINE


def DEFINE_enum(name: str, default: Any, values: Any, *args: Any, **kwargs: Any) -> Holder:
    """Define a flag that has one of several values."""
    return DEFINE(name, next(iter(values)) if default is None else default)


DEFINE_alias = DEFINE_multi_enum = DEFINE_multi_integer = DEFINE_multi_string = DEFINE_multi_float = (
    DEFINE_spaceseplist
) = DEFINE


def mark_flag_as_required(name: str) -> None:
    """Give it a value as an argument."""
    from ...arguments import text_for

    if getattr(FLAGS, name, None) is None:
        setattr(FLAGS, name, commands.said(run(), ("--" + name, "-" + name)) or text_for(run(), name))
        run().used("argument " + name, repr(getattr(FLAGS, name)))


def mark_flags_as_required(names: Any) -> None:
    """Give them values as arguments."""
    for name in names:
        mark_flag_as_required(name)
