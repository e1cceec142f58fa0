"""Settings that a Python file of the project makes: ``--config=configs/small.py``."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

from ... import arguments, commands, content, context
from ...sizes import reduced_settings
from ..absl import flags


def DEFINE_config_file(name: str, default: Any = None, *args: Any, **kwargs: Any) -> None:
    """A flag whose value is what ``get_config`` of a file gives."""
    run = context.run()
    told = commands.said(run, ("--" + name, "-" + name))
    path, _, rest = str(told or default or "").partition(":")
    place = _place(path) if path else None
    if place is None:
        place = content.book.turn("settings", files(run))
        if place is None:
            return
        run.used("settings " + name, "the project's " + os.path.relpath(place, run.root))
    found = importlib.util.spec_from_file_location("_config_" + name, place)
    if found is None or found.loader is None:
        return
    module = importlib.util.module_from_spec(found)
    sys.modules[module.__name__] = module
    found.loader.exec_module(module)
    settings = module.get_config(*([rest] if rest else []))
    flags.FLAGS.give(name, smaller(settings))


def DEFINE_config_dict(name: str, settings: Any, *args: Any, **kwargs: Any) -> None:
    """A flag whose value is a mapping."""
    flags.FLAGS.give(name, smaller(settings))


def smaller(settings: Any) -> Any:
    """The settings, with the sizes in them reduced where sizes are."""
    if isinstance(settings, dict) and context.run().small:
        for key, value in list(settings.items()):
            settings[key] = smaller(value) if isinstance(value, dict) else value
        plain = {key: value for key, value in settings.items() if not isinstance(value, dict)}
        for key, value in reduced_settings(context.run(), plain).items():
            if value != settings[key]:
                settings[key] = value
    return settings


def _place(path: str) -> str | None:
    """Where a file of the project lies, ``None`` if it does not exist."""
    for folder in ("", *context.run().folders()):
        if os.path.isfile(os.path.join(folder, path)):
            return os.path.join(folder, path)
    return None


def files(run: context.Run) -> list[str]:
    """The files of the project that make settings, those first that have most of what the script asks for."""
    asked = arguments.names_asked(run.tree(run.entry))
    found: list[tuple[int, str]] = []
    for folder, inner, names in os.walk(run.root):
        inner[:] = sorted(one for one in inner if one[0] != ".")[:50]
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(".py") and "\ndef get_config(" in "\n" + context.read(path):
                found.append((-len(asked & arguments.names_asked(run.tree(path))), path))
    return [path for _, path in sorted(found)]
