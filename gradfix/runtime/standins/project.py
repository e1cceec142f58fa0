"""The project's own packages, as if the project had been installed."""

from __future__ import annotations

import os
import sys

from . import context
from .schema import Schema, with_listed


def advise(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema in which a package of the project is found."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        for folder in (run.root, os.path.join(run.root, "src")):
            there = [os.path.join(folder, top), os.path.join(folder, top + ".py")]
            if any(os.path.exists(one) for one in there) and folder not in run.schema.get("paths", []):
                return with_listed(run.schema, "paths", folder)
    return None


def install(run: context.StandinRun) -> None:
    """Do what the schema says."""
    for folder in run.schema.get("paths", []):
        sys.path.append(folder)
        run.used("packages of the project", "those in its folder, as if it had been installed")
