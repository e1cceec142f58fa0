"""hydra: the project's own files of settings, composed by their lists of defaults."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

from ...context import run
from ...inert import others
from .. import omegaconf
from ..omegaconf import DictConfig, OmegaConf, merged, resolved, wrapped
from . import core, utils

__all__ = ["compose", "core", "initialize", "initialize_config_dir", "main", "utils"]


def read(path: str) -> Any:
    """The settings of a file."""
    with open(path, encoding="utf-8") as file:
        return wrapped(omegaconf.read(file.read()))


def _package(path: str, group: str, settings: Any) -> str:
    """Where the settings of a group's file belong: as its first lines say, else below the group's name.

    Until hydra 1.0 they belonged at the top if nothing was said: such a file has its group's name itself.
    """
    with open(path, encoding="utf-8") as file:
        said = re.search(r"^#[ \t]*@package[ \t]+(\S+)", file.read(), re.MULTILINE)
    if said is not None:
        return group if said[1] == "_group_" else str(said[1])
    return "_global_" if isinstance(settings.get(group.rpartition("/")[2]), dict) else group


def composed(folder: str, name: str, group: str = "") -> Any:
    """The settings of a file, or those that a class gives where there is none, after those that their list of
    defaults names; ``group`` is that of the folder."""
    path = os.path.join(folder, name if name.endswith((".yaml", ".yml")) else name + ".yaml")
    kept = None if os.path.isfile(path) else core.stored(group, name)
    own = read(path) if kept is None else wrapped(kept.node)
    made, placed = DictConfig(), False
    for one in own.pop("defaults", None) or []:
        if one == "_self_":
            merged(made, own)
            placed = True
            continue
        chosen_in, chosen = next(iter(one.items())) if isinstance(one, dict) else ("", one)
        chosen_in = chosen_in.split()[-1] if chosen_in else ""
        if chosen is None or chosen_in.startswith("hydra/") or str(chosen_in).startswith("override"):
            continue
        part = str(chosen).partition("@")[0]
        within, _, key = chosen_in.partition("@")
        path = os.path.join(folder, within, part)
        inner_group = "/".join(one for one in (group, within, os.path.dirname(part)) if one).strip("/")
        kept = core.stored(inner_group, os.path.basename(part))
        if os.path.isfile(path + ".yaml"):
            inner = composed(os.path.dirname(path), os.path.basename(path), inner_group)
            key = key or _package(path + ".yaml", within or os.path.dirname(part), inner)
        elif kept is not None:
            inner = composed(os.path.dirname(path), os.path.basename(path), inner_group)
            key = key or kept.package or within or os.path.dirname(part)
        else:
            continue
        for level in reversed(
            [level for level in key.replace("/", ".").split(".") if level and level != "_global_"]
        ):
            inner = DictConfig({level: inner})
        merged(made, inner)
    if not placed:
        merged(made, own)
    return made


def main(config_path: Any = None, config_name: Any = None, **kwargs: Any) -> Any:
    """A decorator that calls a function with the settings."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            if args:
                return function(*args)
            folder = os.path.join(os.path.dirname(run().entry), config_path or "")
            name = config_name
            if name is None and str(config_path).endswith((".yaml", ".yml")):
                folder, name = os.path.split(folder)
            settings = composed(folder, name) if name else DictConfig()
            settings.pop("hydra", None)
            run().used("hydra", "the project's settings")
            return function(resolved(settings, settings))

        return call

    return decorate


def compose(config_name: Any = None, overrides: Any = None, **kwargs: Any) -> Any:
    """The settings of a file."""
    made = composed(_folder[0], config_name)
    for one in overrides or []:
        key, _, value = one.partition("=")
        inner: Any = OmegaConf._read("value: " + value)["value"]
        for level in reversed(key.lstrip("+").split(".")):
            inner = DictConfig({level: inner})
        merged(made, inner)
    return resolved(made, made)


_folder = ["."]


class initialize:
    """Names the folder of the settings."""

    def __init__(self, config_path: Any = None, *args: Any, **kwargs: Any) -> None:
        folder = kwargs.get("config_dir", config_path) or ""
        _folder[0] = os.path.join(os.path.dirname(run().entry), folder)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


initialize_config_dir = initialize
__getattr__ = others(__name__)
