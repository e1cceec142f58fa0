"""omegaconf: settings from files and from code, with references to each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import context, fields, sizes
from . import yaml

MISSING = "???"


class DictConfig(fields.Fields):
    """Settings by name."""


ListConfig = list


class OmegaConf:
    """What settings are made with."""

    @staticmethod
    def create(given: Any = None) -> Any:
        """Settings of a dictionary, a list, a data class, or a text."""
        given = yaml.safe_load(given) if isinstance(given, str) else given
        found = fields.made({} if given is None else fields.plain(given), DictConfig)
        return fields.resolved(found, found)

    structured = create

    @staticmethod
    def load(file: Any) -> Any:
        """Settings of a file."""
        run = context.run()
        if hasattr(file, "read"):
            read = yaml.safe_load(file)
        else:
            with open(file, encoding="utf-8") as opened:
                read = yaml.safe_load(opened)
        return OmegaConf.create(sizes.reduced_settings(run, read) if run.small else read)

    @staticmethod
    def merge(*given: Any) -> Any:
        """Settings of which the later ones count."""
        found = DictConfig()
        for one in given:
            found = fields.merged(found, fields.made(one, DictConfig))
        return fields.resolved(found, found)

    @staticmethod
    def from_cli(*args: Any) -> Any:
        """Nothing was typed."""
        return DictConfig()

    @staticmethod
    def to_container(settings: Any, *args: Any, **kwargs: Any) -> Any:
        """Dictionaries and lists."""
        return fields.plain(settings)

    @staticmethod
    def to_yaml(settings: Any, *args: Any, **kwargs: Any) -> str:
        """As text."""
        return str(yaml.dump(fields.plain(settings)))

    @staticmethod
    def save(settings: Any, file: Any, *args: Any) -> None:
        """As a file."""
        if hasattr(file, "write"):
            file.write(OmegaConf.to_yaml(settings))
            return
        with open(file, "w", encoding="utf-8") as opened:
            opened.write(OmegaConf.to_yaml(settings))

    @staticmethod
    def is_config(given: Any) -> bool:
        """Whether something is settings."""
        return isinstance(given, (DictConfig, list))

    @staticmethod
    def select(settings: Any, path: str, default: Any = None, **kwargs: Any) -> Any:
        """The setting of a dotted name."""
        return fields.looked_up(settings, path, default)

    @staticmethod
    def nothing(*args: Any, **kwargs: Any) -> None:
        """There is nobody to be strict to."""

    set_struct = set_readonly = resolve = register_new_resolver = register_resolver = nothing


@contextlib.contextmanager
def open_dict(settings: Any) -> Iterator[Any]:
    """All settings are open."""
    yield settings


read_write = open_dict
