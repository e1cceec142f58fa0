"""omegaconf: settings as attributes and keys."""

from __future__ import annotations

import dataclasses
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
    """Dictionaries and data classes, or objects of these, as settings, at any depth."""
    if dataclasses.is_dataclass(value):
        made = DictConfig({one.name: wrapped(held(value, one)) for one in dataclasses.fields(value)})
        made.__dict__["kind"] = value if isinstance(value, type) else type(value)
        return made
    if isinstance(value, DictConfig):
        made = DictConfig({key: wrapped(one) for key, one in value.items()})
        made.__dict__["kind"] = value.__dict__.get("kind")
        return made
    if isinstance(value, dict):
        return DictConfig({key: wrapped(one) for key, one in value.items()})
    return [wrapped(one) for one in value] if isinstance(value, (list, tuple)) else value


def held(value: Any, field: dataclasses.Field[Any]) -> Any:
    """What a data class or an object of one has in a field; a class may say that it has to be given."""
    if not isinstance(value, type):
        return getattr(value, field.name)
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return MISSING if field.default is dataclasses.MISSING else field.default


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
    """The settings of both, those of the second first, but for what has to be given yet."""
    if getattr(other, "kind", None) is not None:
        one.__dict__["kind"] = other.__dict__["kind"]
    for key, value in other.items():
        if isinstance(value, str) and value == MISSING and key in one:
            continue
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
        plain = isinstance(value, dict) or dataclasses.is_dataclass(value) or not hasattr(value, "__dict__")
        made = wrapped(value or {} if plain else vars(value))
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
    def get_type(value: Any, key: str | None = None) -> Any:
        """The data class whose settings they are, else ``dict`` or ``list``."""
        value = value if key is None else value[key]
        if isinstance(value, DictConfig):
            return value.__dict__.get("kind") or dict
        return type(value)

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
