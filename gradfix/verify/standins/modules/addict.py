"""addict: keys as attributes; those that are not there are empty and may be filled at any depth."""

from __future__ import annotations

import copy
from typing import Any


class Dict(dict):  # type: ignore[type-arg]
    """A dictionary whose keys are attributes as well."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        object.__setattr__(self, "_held_by", None)
        super().__init__()
        self.update(*args, **kwargs)

    def __missing__(self, key: Any) -> Dict:
        made = Dict()
        # It belongs to this one once it holds something.
        object.__setattr__(made, "_held_by", (self, key))
        return made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, _hooked(value))
        if self._held_by is not None:
            owner, place = self._held_by
            object.__setattr__(self, "_held_by", None)
            owner[place] = self

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Take the values of another; what both have as dictionaries is joined."""
        for key, value in dict(*args, **kwargs).items():
            if isinstance(value, dict) and isinstance(self.get(key), dict):
                self[key].update(value)
            else:
                self[key] = value

    def to_dict(self) -> dict[Any, Any]:
        """A plain dictionary."""
        return {key: value.to_dict() if isinstance(value, Dict) else value for key, value in self.items()}

    def deepcopy(self) -> Any:
        """A copy of all of it."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: Any) -> Dict:
        return Dict({key: copy.deepcopy(value, memo) for key, value in self.items()})


def _hooked(value: Any) -> Any:
    if type(value) is dict:
        return Dict(value)
    return type(value)(_hooked(one) for one in value) if type(value) in (list, tuple) else value
