"""hydra: the settings of the project's own files, in one process, with nothing typed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from ... import context, fields, sizes
from .. import yaml
from ..omegaconf import DictConfig, OmegaConf
from . import utils  # noqa: F401
from .core.config_store import STORED


def main(
    config_path: Any = None, config_name: Any = None, version_base: Any = None, **others: Any
) -> Callable[[Any], Any]:
    """A decorator: the function is called with the settings."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def called(given: Any = None) -> Any:
            folder = os.path.dirname(os.path.abspath(function.__code__.co_filename))
            return function(settings(folder, config_path, config_name) if given is None else given)

        return called

    return decorate


def settings(folder: str, path: Any, name: Any) -> DictConfig:
    """All settings of an application, which lies in ``folder``."""
    run = context.run()
    if name is None and str(path or "").endswith((".yaml", ".yml")):
        path, name = os.path.split(str(path))
    name = str(name or "")
    if name in STORED:
        found = OmegaConf.create(STORED[name])
    elif not name:
        found = DictConfig()
    else:
        found = composed(os.path.join(folder, str(path or "")), name)
    if run.small:
        found = OmegaConf.create(sizes.reduced_settings(run, fields.plain(found)))
    return fields.resolved(found, found)  # type: ignore[no-any-return]


def composed(folder: str, name: str) -> DictConfig:
    """A file of settings, with those that its list of defaults names.

    Raises:
        FileNotFoundError: if one of them is missing.
    """
    base = os.path.join(folder, name)
    file = base if base.endswith((".yaml", ".yml")) else base + ".yaml"
    if not os.path.isfile(file) and STORED.get(name) is not None:
        return OmegaConf.create(STORED[name])  # type: ignore[no-any-return]
    with open(file, encoding="utf-8") as opened:
        own = yaml.safe_load(opened) or {}
    found = DictConfig()
    late = True
    for one in own.pop("defaults", []):
        if one == "_self_":
            found, late = fields.merged(found, DictConfig(own)), False
        elif isinstance(one, str):
            found = fields.merged(found, composed(os.path.dirname(base), one))
        else:
            for group, chosen in one.items():
                words = str(group).split()
                if words[0] == "override" or chosen in (None, "null") or not isinstance(chosen, str):
                    continue
                place, _, package = words[-1].partition("@")
                try:
                    inner = composed(os.path.join(os.path.dirname(base), place), chosen)
                except FileNotFoundError:
                    if words[0] == "optional":
                        continue
                    raise
                for part in reversed((package or place.replace("/", ".")).split(".")):
                    inner = inner if part in ("", "_global_") else DictConfig({part: inner})
                found = fields.merged(found, inner)
    return fields.merged(found, DictConfig(own)) if late else found
