"""simple_parsing: settings of data classes, with their defaults."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from ..calls import called, shrink_fields
from ..inert import others


class ArgumentParser(argparse.ArgumentParser):
    """A parser that is given classes of settings."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        known = ("prog", "usage", "description", "epilog", "parents", "add_help")
        super().__init__(*args, **{name: value for name, value in kwargs.items() if name in known})
        self.classes: dict[str, Any] = {}

    def add_arguments(self, kind: Any, dest: str, *args: Any, default: Any = None, **kwargs: Any) -> None:
        """Keep a class of settings under a name."""
        self.classes[dest] = shrink_fields(called(kind) if default is None else default)

    def parse_known_args(self, args: Any = None, namespace: Any = None, **kwargs: Any) -> Any:
        """Settings as they are when nothing is said on the command line."""
        found, rest = super().parse_known_args(args, namespace)
        for name, value in self.classes.items():
            setattr(found, name, value)
        return found, rest


def parse(kind: Any, *args: Any, **kwargs: Any) -> Any:
    """An object of a class of settings, with its defaults."""
    return shrink_fields(called(kind))


def field(default: Any = dataclasses.MISSING, *args: Any, **kwargs: Any) -> Any:
    """A field of settings."""
    made = kwargs.get("default_factory", dataclasses.MISSING)
    if made is not dataclasses.MISSING:
        return dataclasses.field(default_factory=made)
    return dataclasses.field() if default is dataclasses.MISSING else dataclasses.field(default=default)


def choice(*choices: Any, default: Any = dataclasses.MISSING, **kwargs: Any) -> Any:
    """A field of settings that has one of several values."""
    return field(default)


def list_field(*values: Any, **kwargs: Any) -> Any:
    """A field of settings that holds several values."""
    return dataclasses.field(default_factory=lambda: [*values])


mutable_field = list_field


class Serializable:
    """Settings that can be written."""

    def to_dict(self) -> dict[str, Any]:
        """The values by their names."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]


__getattr__ = others(__name__)
