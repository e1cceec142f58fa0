"""Objects from settings that name their class, and where the script was started."""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

from ... import context


def get_original_cwd() -> str:
    """The working folder."""
    return os.getcwd()


def to_absolute_path(path: str) -> str:
    """A path from the working folder."""
    return os.path.abspath(path)


def get_class(path: str) -> Any:
    """What a dotted name stands for."""
    module, _, name = path.rpartition(".")
    main = context.run().script
    if module == "__main__" or module == os.path.splitext(os.path.basename(main))[0]:
        module = "__main__"
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return getattr(get_class(module), name)


get_method = get_object = get_class


def instantiate(settings: Any, *args: Any, **more: Any) -> Any:
    """The object of settings that name its class as ``_target_``; those within too."""
    if settings is None:
        return None
    if isinstance(settings, list):
        return [instantiate(one) for one in settings]
    values = {**settings, **more}
    path = values.pop("_target_", None)
    recursive = values.pop("_recursive_", True)
    partial = values.pop("_partial_", False)
    values.pop("_convert_", None)
    for name, value in values.items():
        if recursive and isinstance(value, dict) and "_target_" in value:
            values[name] = instantiate(value)
    if path is None:
        return settings
    kind = get_class(str(path))
    return functools.partial(kind, *args, **values) if partial else kind(*args, **values)


call = instantiate
