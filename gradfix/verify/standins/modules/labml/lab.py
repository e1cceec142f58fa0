"""Where labml keeps things."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...inert import others


def get_path() -> Path:
    """The folder of the project."""
    return Path.cwd()


def get_data_path() -> Path:
    """The folder of data."""
    return get_path() / "data"


def get_experiments_path() -> Path:
    """The folder of what earlier runs have left."""
    return get_path() / "logs"


def configure(*args: Any, **kwargs: Any) -> None:
    """Nothing."""


__getattr__ = others(__name__)
