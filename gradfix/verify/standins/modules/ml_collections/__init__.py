"""ml_collections: settings as attributes."""

from __future__ import annotations

import copy
from typing import Any

from ..easydict import EasyDict
from . import config_dict

__all__ = ["ConfigDict", "FrozenConfigDict", "config_dict"]


class ConfigDict(EasyDict):
    """A dictionary whose keys are attributes."""

    def __init__(self, initial_dictionary: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(initial_dictionary or {})

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError as error:
            raise AttributeError(name) from error

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries."""
        return {name: one.to_dict() if isinstance(one, ConfigDict) else one for name, one in self.items()}

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Take what others have, those within as well."""
        for name, value in dict(*args, **kwargs).items():
            if isinstance(value, dict) and isinstance(self.get(name), ConfigDict):
                self[name].update(value)
            else:
                self[name] = value

    def copy_and_resolve_references(self, *args: Any) -> ConfigDict:
        """A copy of all of it."""
        return copy.deepcopy(self)

    def get_ref(self, name: str) -> Any:
        """The value itself."""
        return self[name]

    def lock(self) -> ConfigDict:
        """Nothing is locked."""
        return self

    unlock = lock

    def unlocked(self) -> Any:
        """Nothing is locked."""
        import contextlib

        return contextlib.nullcontext(self)

    def __deepcopy__(self, memo: Any) -> ConfigDict:
        return type(self)({name: copy.deepcopy(value, memo) for name, value in self.items()})


FrozenConfigDict = ConfigDict
