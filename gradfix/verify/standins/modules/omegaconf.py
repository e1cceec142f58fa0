"""omegaconf: settings as attributes and keys."""

from __future__ import annotations

import re
from typing import Any

from ..inert import library

MISSING = "???"


class DictConfig(dict):  # type: ignore[type-arg]
    """Settings under names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        for holder, name in self.__dict__.get("followers", {}).get(key, ()):
            holder[name] = value

    def follow(self, key: Any, holder: Any, name: Any) -> None:
        """What is set here later is set there, too."""
        self.__dict__.setdefault("followers", {}).setdefault(key, []).append((holder, name))


ListConfig = list


def wrapped(value: Any) -> Any:
    """Dictionaries as settings, at any depth."""
    if isinstance(value, dict):
        return DictConfig({key: wrapped(one) for key, one in value.items()})
    return [wrapped(one) for one in value] if isinstance(value, (list, tuple)) else value


FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
"""A number that yaml by itself takes for a word."""


def read(text: str) -> Any:
    """What a text of settings holds."""
    return numbers(library("yaml").safe_load(text) or {})


def numbers(value: Any) -> Any:
    """Words that are numbers as such, at any depth."""
    if isinstance(value, dict):
        return {key: numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [numbers(one) for one in value]
    return float(value) if isinstance(value, str) and FLOAT.fullmatch(value) else value


def resolved(value: Any, root: Any) -> Any:
    """``${name.of.another}`` by what stands there, or will stand there once it has been given."""
    if isinstance(value, dict):
        for key in value:
            said = re.fullmatch(r"\$\{(?:([\w.]+)\.)?(\w+)\}", str(value[key]))
            value[key] = resolved(value[key], root)
            if said is not None and value[key] == MISSING:
                holder = OmegaConf.select(root, said[1]) if said[1] else root
                holder.follow(said[2], value, key)
        return value
    if isinstance(value, list):
        return [resolved(one, root) for one in value]
    found = re.fullmatch(r"\$\{([\w.]+)\}", value) if isinstance(value, str) else None
    if not found:
        return value
    inner: Any = root
    for name in found[1].split("."):
        inner = inner.get(name) if isinstance(inner, dict) else None
    return resolved(inner, root)


def merged(one: Any, other: Any) -> Any:
    """The settings of both, those of the second first."""
    for key, value in other.items():
        both = isinstance(value, dict) and isinstance(one.get(key), dict)
        one[key] = merged(one[key], value) if both else value
    return one


class OmegaConf:
    """Makes settings."""

    @staticmethod
    def create(value: Any = None) -> Any:
        """Of dictionaries, lists, or text."""
        if isinstance(value, str):
            return OmegaConf._read(value)
        made = wrapped(
            vars(value) if hasattr(value, "__dict__") and not isinstance(value, dict) else value or {}
        )
        return resolved(made, made)

    structured = create

    @staticmethod
    def _read(text: str) -> Any:
        made = wrapped(read(text))
        return resolved(made, made)

    @staticmethod
    def load(path: Any) -> Any:
        """Of a file."""
        if hasattr(path, "read"):
            return OmegaConf._read(path.read())
        with open(path, encoding="utf-8") as file:
            return OmegaConf._read(file.read())

    @staticmethod
    def merge(*parts: Any) -> Any:
        """Those of several, later ones first."""
        made = DictConfig()
        for part in parts:
            merged(made, OmegaConf.create(part))
        return made

    @staticmethod
    def from_cli(*args: Any) -> Any:
        """Nothing was typed."""
        return DictConfig()

    from_dotlist = from_cli

    @staticmethod
    def to_container(value: Any, *args: Any, **kwargs: Any) -> Any:
        """As dictionaries and lists."""
        if isinstance(value, dict):
            return {key: OmegaConf.to_container(one) for key, one in value.items()}
        return [OmegaConf.to_container(one) for one in value] if isinstance(value, list) else value

    to_object = to_container

    @staticmethod
    def to_yaml(value: Any, *args: Any, **kwargs: Any) -> str:
        """As text."""
        return str(value)

    @staticmethod
    def is_missing(value: Any, key: str) -> bool:
        """Whether a value has to be given."""
        return bool(value.get(key) == MISSING)

    @staticmethod
    def select(value: Any, key: str, default: Any = None) -> Any:
        """The value of a dotted name."""
        for name in key.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return default if value is None else value

    @staticmethod
    def set_struct(*args: Any, **kwargs: Any) -> None:
        """Nothing is refused, kept or registered."""

    save = set_readonly = register_new_resolver = register_resolver = resolve = set_struct

    @staticmethod
    def is_config(value: Any) -> bool:
        """Whether a value is one of settings."""
        return isinstance(value, (DictConfig, list))


def open_dict(value: Any) -> Any:
    """Nothing is refused."""
    import contextlib

    return contextlib.nullcontext(value)


read_write = open_dict
