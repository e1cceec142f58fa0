"""Dictionaries whose keys are attributes too, as libraries for settings have them."""

from __future__ import annotations

import dataclasses
import re
from typing import Any


class Fields(dict):  # type: ignore[type-arg]
    """Settings by name; those within are of the same kind."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__()
        for name, value in dict(*given, **named).items():
            self[name] = value

    def __setitem__(self, name: Any, value: Any) -> None:
        super().__setitem__(name, made(value, type(self)))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def update(self, *given: Any, **named: Any) -> None:
        """As of a dictionary."""
        for name, value in dict(*given, **named).items():
            self[name] = value

    def copy(self) -> Any:
        """Other settings with the same values."""
        return type(self)(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(plain(self))


def made(value: Any, kind: type[Fields] = Fields) -> Any:
    """What was read or written down, as settings."""
    if dataclasses.is_dataclass(value):
        value = dataclasses.asdict(value() if isinstance(value, type) else value)
    if isinstance(value, dict) and not isinstance(value, kind):
        return kind(value)
    return [made(one, kind) for one in value] if type(value) in (list, tuple) else value


def plain(value: Any) -> Any:
    """Settings as dictionaries and lists."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def merged(one: Any, other: Any) -> Any:
    """Settings of which the later ones count."""
    found = made(plain(one), type(one) if isinstance(one, Fields) else Fields)
    for name, value in other.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = merged(found[name], value) if both else value
    return found


REFERENCE = re.compile(r"\$\{([\w.]+)\}")


def resolved(value: Any, root: Any) -> Any:
    """Settings whose texts refer to others (``${model.width}``), with those in their places."""
    if isinstance(value, dict):
        for name in value:
            value[name] = resolved(value[name], root)
        return value
    if isinstance(value, list):
        return [resolved(one, root) for one in value]
    if not isinstance(value, str):
        return value
    whole = REFERENCE.fullmatch(value)
    if whole:
        return looked_up(root, whole[1], value)
    return REFERENCE.sub(lambda found: str(looked_up(root, found[1], found[0])), value)


def looked_up(root: Any, path: str, otherwise: Any) -> Any:
    """The setting of a dotted name; ``otherwise`` where there is none, or one that refers on and on."""
    found = root
    for part in path.split("."):
        if not isinstance(found, dict) or part not in found:
            return otherwise
        found = found[part]
    return found if not isinstance(found, str) or found == otherwise else resolved_once(found, root)


def resolved_once(text: str, root: Any) -> Any:
    """A text that a reference led to, if it refers to something itself."""
    whole = REFERENCE.fullmatch(text)
    target: Any = root
    for part in whole[1].split(".") if whole else ():
        target = target.get(part, text) if isinstance(target, dict) else text
    return target if whole else text
