"""six: Python 3 under the names that both Pythons had."""

from __future__ import annotations

import builtins
import importlib
import io
import sys
import types
from typing import Any, ClassVar

PY2, PY3, PY34 = False, True, True
string_types: tuple[type, ...] = (str,)
integer_types: tuple[type, ...] = (int,)
class_types: tuple[type, ...] = (type,)
text_type, binary_type = str, bytes
StringIO, BytesIO = io.StringIO, io.BytesIO
unichr = chr


def iteritems(values: Any) -> Any:
    """Keys and values."""
    return iter(values.items())


def iterkeys(values: Any) -> Any:
    """Keys."""
    return iter(values.keys())


def itervalues(values: Any) -> Any:
    """Values."""
    return iter(values.values())


def with_metaclass(meta: Any, *bases: Any) -> Any:
    """A base whose class is ``meta``."""
    return meta("base", bases, {})


def add_metaclass(meta: Any) -> Any:
    """A decorator that makes a class again with ``meta``."""

    def again(owner: Any) -> Any:
        kept = {k: v for k, v in vars(owner).items() if k not in ("__dict__", "__weakref__")}
        return meta(owner.__name__, owner.__bases__, kept)

    return again


def ensure_str(text: Any, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Text."""
    return text.decode(encoding, errors) if isinstance(text, bytes) else str(text)


ensure_text = ensure_str


def b(text: str) -> bytes:
    """Bytes of a text."""
    return text.encode("latin-1")


def u(text: str) -> str:
    """A text."""
    return text


class _Moves(types.ModuleType):
    range = xrange = builtins.range
    zip, map, filter, input, reduce = builtins.zip, builtins.map, builtins.filter, builtins.input, None
    NAMES: ClassVar[dict[str, str]] = {
        "cPickle": "pickle",
        "urllib": "urllib",
        "urllib_parse": "urllib.parse",
        "configparser": "configparser",
        "queue": "queue",
        "builtins": "builtins",
        "StringIO": "io",
    }

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "zip_longest":
            return importlib.import_module("itertools").zip_longest
        found = importlib.import_module(self.NAMES.get(name, name))
        for inner in ("request", "parse", "error") if name == "urllib" else ():
            importlib.import_module("urllib." + inner)
        return found.StringIO if name == "StringIO" else found


moves = _Moves("six.moves")
moves.reduce = importlib.import_module("functools").reduce
moves.__path__ = []
for _name in ("six.moves",):
    sys.modules[_name] = moves
for _name in ("urllib", "urllib.request", "urllib.parse", "urllib.error", "cPickle", "queue"):
    sys.modules["six.moves." + _name] = importlib.import_module("pickle" if _name == "cPickle" else _name)
