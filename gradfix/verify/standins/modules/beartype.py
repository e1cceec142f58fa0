"""beartype: functions whose types nobody checks."""

from __future__ import annotations

import typing
from typing import Any


def beartype(*args: Any, **kwargs: Any) -> Any:
    """The function as it is."""
    return args[0] if args and callable(args[0]) else beartype


class BeartypeConf:
    """How to check, which nobody does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


def __getattr__(name: str) -> Any:
    """``beartype.typing`` and the like: what ``typing`` has."""
    if name.startswith("__"):
        raise AttributeError(name)
    return typing if name == "typing" else getattr(typing, name)
