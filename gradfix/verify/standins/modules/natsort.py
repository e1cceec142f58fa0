"""natsort: sorted, numbers by their value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any


def natsort_keygen(key: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A key by which names sort as people count."""

    def order(value: Any) -> list[Any]:
        text = str(key(value) if key else value)
        return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]

    return order


def natsorted(
    values: Iterable[Any], key: Any = None, reverse: bool = False, *args: Any, **kwargs: Any
) -> list[Any]:
    """The values in the order in which people count."""
    return sorted(values, key=natsort_keygen(key), reverse=reverse)
