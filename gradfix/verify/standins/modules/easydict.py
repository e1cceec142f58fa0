"""easydict: keys as attributes."""

from __future__ import annotations

from typing import Any


class EasyDict(dict):  # type: ignore[type-arg]
    """A dictionary whose keys are attributes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        inner = isinstance(value, dict) and not isinstance(value, EasyDict)
        super().__setitem__(key, type(self)(value) if inner else value)

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value
