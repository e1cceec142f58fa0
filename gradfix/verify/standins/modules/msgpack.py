"""msgpack: values in files, which ``pickle`` keeps here."""

from __future__ import annotations

import pickle
from typing import Any


def load(stream: Any, *args: Any, **kwargs: Any) -> Any:
    """What a file holds."""
    return pickle.load(stream)


def dump(value: Any, stream: Any, *args: Any, **kwargs: Any) -> None:
    """Keep a value in a file."""
    pickle.dump(value, stream)


def loads(packed: Any, *args: Any, **kwargs: Any) -> Any:
    """The value of what :func:`dumps` has made."""
    return pickle.loads(packed)


def dumps(value: Any, *args: Any, **kwargs: Any) -> bytes:
    """A value as bytes."""
    return pickle.dumps(value)


unpack, pack, unpackb, packb = load, dump, loads, dumps
