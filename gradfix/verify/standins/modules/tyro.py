"""tyro: an object of the class of settings, with its defaults."""

from __future__ import annotations

from typing import Any

from ..calls import called, shrink_fields


def cli(kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Settings as they are when nothing is said on the command line."""
    return shrink_fields(called(kind))


class conf:
    """Marks of settings, which change nothing."""

    def __class_getitem__(cls, item: Any) -> Any:
        return item
