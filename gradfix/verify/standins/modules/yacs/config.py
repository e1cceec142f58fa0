"""yacs.config: settings as attributes, with values of files and of a command line in their places."""

from __future__ import annotations

import ast
import copy
from typing import Any

from ...calls import reduced_value
from ...inert import library


class CfgNode(dict):  # type: ignore[type-arg]
    """A dictionary whose keys are attributes; others cannot be added once it is frozen."""

    def __init__(
        self, init_dict: Any = None, key_list: Any = None, new_allowed: bool = False, **kwargs: Any
    ) -> None:
        super().__init__()
        self.__dict__.update(_frozen=False, _new=new_allowed)
        for key, value in (init_dict or {}).items():
            inner = isinstance(value, dict) and not isinstance(value, CfgNode)
            self[key] = type(self)(value) if inner else value

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen:
            raise AttributeError("Attempted to set " + name + ", but the settings are frozen")
        self[name] = value

    def _all(self, frozen: bool) -> None:
        self.__dict__["_frozen"] = frozen
        for value in self.values():
            if isinstance(value, CfgNode):
                value._all(frozen)

    def freeze(self) -> None:
        """Nothing may be set any more."""
        self._all(True)

    def defrost(self) -> None:
        """Everything may be set."""
        self._all(False)

    def is_frozen(self) -> bool:
        """Whether nothing may be set."""
        return bool(self._frozen)

    def set_new_allowed(self, allowed: bool) -> None:
        """Whether a file may have keys of its own."""
        self.__dict__["_new"] = allowed

    def is_new_allowed(self) -> bool:
        """Whether a file may have keys of its own."""
        return bool(self._new)

    def clone(self) -> CfgNode:
        """A copy of all of it."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: Any) -> CfgNode:
        made = type(self)(new_allowed=self._new)
        for key, value in self.items():
            dict.__setitem__(made, key, copy.deepcopy(value, memo))
        made.__dict__["_frozen"] = self._frozen
        return made

    def register_renamed_key(self, *args: Any, **kwargs: Any) -> None:
        """Files have the new one."""

    register_deprecated_key = register_renamed_key

    def merge_from_other_cfg(self, other: Any) -> None:
        """Take what another has."""
        for key, value in other.items():
            value = _read(value)
            if isinstance(value, dict) and isinstance(self.get(key), CfgNode):
                self[key].merge_from_other_cfg(value)
            elif key in self or self._new:
                self[key] = _as(value, self.get(key))
            else:
                raise KeyError("Non-existent config key: " + str(key))

    def merge_from_file(self, cfg_filename: Any) -> None:
        """Take what a file has."""
        with open(cfg_filename, encoding="utf-8") as file:
            self.merge_from_other_cfg(self.load_cfg(file))

    def merge_from_list(self, cfg_list: Any) -> None:
        """Take names and values by turns."""
        for name, value in zip(cfg_list[::2], cfg_list[1::2]):
            *inner, last = name.split(".")
            node = self
            for one in inner:
                node = node[one]
            node[last] = reduced_value("setting " + last, last, _as(_read(value), node.get(last)))

    @classmethod
    def load_cfg(cls, file: Any) -> CfgNode:
        """What a file, or a text, has."""
        return cls(library("yaml").safe_load(file) or {})

    def dump(self, *args: Any, **kwargs: Any) -> str:
        """As text."""
        return repr(self)


def _read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def _as(value: Any, before: Any) -> Any:
    if isinstance(before, tuple) and isinstance(value, list):
        return tuple(value)
    return list(value) if isinstance(before, list) and isinstance(value, tuple) else value


load_cfg = CfgNode.load_cfg
