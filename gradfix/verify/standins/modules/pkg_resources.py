"""pkg_resources: which versions are installed, and where files lie that belong to a module."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import sys
from typing import Any

from .. import absent, context, inert

packaging = inert.library("packaging")
parse_version = inert.library("packaging.version").parse


class DistributionNotFound(Exception):
    """It is not installed."""


class VersionConflict(Exception):
    """Another version of it is installed."""


def get_distribution(name: str) -> Any:
    """What is installed under a name; what is not has no version, if the script cannot do without."""
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        if absent.prepared(context.run(), "DistributionNotFound|Exception"):
            raise DistributionNotFound(name) from None
        return Own(name)


class Own:
    """What is not installed, but imported from where it lies."""

    version = "0.0.0"

    def __init__(self, name: str) -> None:
        self.key = self.project_name = name
        self.location = os.getcwd()


def require(*names: Any) -> list[Any]:
    """What is installed under these names; nothing is asked of the versions."""
    wanted = [str(one) for some in names for one in ([some] if isinstance(some, str) else some)]
    found: list[Any] = []
    for name in (re.split(r"[^\w.-]", one.strip())[0] for one in wanted):
        try:
            found.append(importlib.metadata.distribution(name))
        except (importlib.metadata.PackageNotFoundError, ValueError):
            found.append(Own(name))
    return found


def resource_filename(module: str, name: str) -> str:
    """The file that belongs to a module."""
    loaded = sys.modules.get(module) or importlib.import_module(module)
    return os.path.join(os.path.dirname(loaded.__file__ or ""), name)


def resource_string(module: str, name: str) -> bytes:
    """What is in it."""
    with open(resource_filename(module, name), "rb") as file:
        return file.read()


def resource_stream(module: str, name: str) -> Any:
    """The same, opened."""
    return open(resource_filename(module, name), "rb")


def resource_exists(module: str, name: str) -> bool:
    """Whether it is there."""
    return os.path.exists(resource_filename(module, name))
