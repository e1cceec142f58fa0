"""joblib: files whose content nobody knows, and work done one after the other."""

from __future__ import annotations

import pickle
from typing import Any

from ..inert import others


def load(path: Any, *args: Any, **kwargs: Any) -> Any:
    """What a file holds."""
    with open(path, "rb") as file:
        return pickle.load(file)


def dump(value: Any, path: Any, *args: Any, **kwargs: Any) -> None:
    """Keep a value."""
    with open(path, "wb") as file:
        pickle.dump(value, file)


def delayed(function: Any) -> Any:
    """A call to be made later."""
    return lambda *args, **kwargs: (function, args, kwargs)


class Parallel:
    """Calls, one after the other."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, calls: Any) -> list[Any]:
        return [function(*args, **kwargs) for function, args, kwargs in calls]

    def __enter__(self) -> Parallel:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


__getattr__ = others(__name__)
