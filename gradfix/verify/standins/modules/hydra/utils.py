"""Objects from settings, and paths."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ...context import run


def get_original_cwd() -> str:
    """The folder in which the script was started."""
    return os.path.dirname(str(run().entry))


def to_absolute_path(path: Any) -> str:
    """A path relative to it."""
    return os.path.join(get_original_cwd(), os.fspath(path))


def get_class(path: str) -> Any:
    """What a dotted name stands for."""
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for name in parts[count:]:
            found = getattr(found, name)
        return found
    raise ImportError(path)


get_method = get_object = get_class


def instantiate(config: Any, *args: Any, **kwargs: Any) -> Any:
    """What ``_target_`` makes of the other settings; until hydra 1.0 what ``class`` makes of ``params``."""
    if config is None:
        return None
    given = {**config, **kwargs}
    old = next((name for name in ("class", "cls") if "_target_" not in given and name in given), None)
    if old is not None:
        return get_class(given[old])(*args, **{**(given.get("params") or {}), **kwargs})
    target = get_class(given.pop("_target_", None) or given.pop("target"))
    partial = given.pop("_partial_", False)
    recursive = given.pop("_recursive_", True)
    given.pop("_convert_", None)
    if recursive:
        given = {
            k: instantiate(v) if isinstance(v, dict) and "_target_" in v else v for k, v in given.items()
        }
    if partial:
        import functools

        return functools.partial(target, *args, **given)
    return target(*args, **given)


call = instantiate
