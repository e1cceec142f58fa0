"""h5py: files whose content nobody knows, and those that the script writes itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy

from .. import content
from ..context import run

written: dict[str, dict[str, Any]] = {}
"""What the script has written, by file."""


class Dataset:
    """An array of a file."""


class Group:
    """Arrays under names."""

    def __init__(self, held: dict[str, Any]) -> None:
        self.held = held
        self.attrs: dict[str, Any] = {}

    def create_dataset(
        self, name: str, shape: Any = None, dtype: Any = None, data: Any = None, **kwargs: Any
    ) -> Any:
        """Keep an array."""
        self.held[name] = numpy.zeros(shape, dtype or "f") if data is None else numpy.array(data, dtype)
        return self.held[name]

    def create_group(self, name: str) -> Group:
        """Keep a group."""
        self.held[name] = Group({})
        return self.held[name]  # type: ignore[no-any-return]

    require_group = create_group

    def __getitem__(self, name: str) -> Any:
        found: Any = self
        for part in [one for one in name.split("/") if one]:
            found = found.held[part]
        return found

    def __setitem__(self, name: str, value: Any) -> None:
        self.held[name] = numpy.asarray(value)

    def __contains__(self, name: str) -> bool:
        return name in self.held

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def keys(self) -> Any:
        """The names."""
        return self.held.keys()

    def items(self) -> Any:
        """Names and arrays."""
        return self.held.items()

    def get(self, name: str, default: Any = None) -> Any:
        """The array of a name."""
        return self.held.get(name, default)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def close(self) -> None:
        """Nothing is open."""

    flush = close


class File(Group):
    """A file that the script writes; read before it was written, one that is made up."""

    def __new__(cls, name: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if mode.startswith("r") and os.path.abspath(name) not in written:
            return Absent(content.absent(run(), name))
        return super().__new__(cls)

    def __init__(self, name: Any, mode: str = "r", *args: Any, **kwargs: Any) -> None:
        super().__init__(written.setdefault(os.path.abspath(name), {}))
        self.filename = os.fspath(name)


class Absent:
    """A file that is made up as it is used."""

    def __init__(self, found: content.Content) -> None:
        self.found = found
        self.attrs = found._child_attribute("attrs")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.found, name)

    def __getitem__(self, name: Any) -> Any:
        return self.found[name]

    def __contains__(self, name: object) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[str]:
        return iter(self.found.keys())

    def close(self) -> None:
        """Nothing is open."""

    flush = close

    def __enter__(self) -> Absent:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


def special_dtype(*args: Any, **kwargs: Any) -> Any:
    """Objects."""
    return numpy.dtype(object)


string_dtype = special_dtype
