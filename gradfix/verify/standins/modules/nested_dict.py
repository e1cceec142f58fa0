"""nested_dict: dictionaries that make the dictionaries within them as they are asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any


class nested_dict(defaultdict[Any, Any]):
    """A dictionary of dictionaries, as deep as it is used; of a mapping, that with all mappings within it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(nested_dict)
        for key, value in (given[0] if given and isinstance(given[0], Mapping) else {}).items():
            self[key] = nested_dict(value) if isinstance(value, Mapping) else value

    def items_flat(self) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """The values that are no dictionaries, with the keys that lead to each."""
        for key, value in self.items():
            if isinstance(value, nested_dict):
                yield from (((key, *keys), inner) for keys, inner in value.items_flat())
            else:
                yield (key,), value

    iteritems_flat = items_flat

    def keys_flat(self) -> Iterator[tuple[Any, ...]]:
        """The keys that lead to each value."""
        return (keys for keys, _ in self.items_flat())

    def values_flat(self) -> Iterator[Any]:
        """The values that are no dictionaries."""
        return (value for _, value in self.items_flat())

    def to_dict(self) -> dict[Any, Any]:
        """The same as plain dictionaries."""
        return {
            key: value.to_dict() if isinstance(value, nested_dict) else value for key, value in self.items()
        }
