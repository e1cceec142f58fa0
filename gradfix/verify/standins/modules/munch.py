"""munch: keys as attributes."""

from __future__ import annotations

from typing import Any


class Munch(dict):  # type: ignore[type-arg]
    """A dictionary whose keys are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def copy(self) -> Any:
        """The same, inner ones too."""
        return type(self).fromDict(self)

    def toDict(self) -> Any:
        """A plain dictionary, with plain ones in it."""
        return unmunchify(self)

    @classmethod
    def fromDict(cls, value: Any) -> Any:
        """A dictionary of which all inner ones have attributes as well."""
        return munchify(value, cls)


class DefaultMunch(Munch):
    """One that has a value for what is not there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        object.__setattr__(self, "_default", args[0] if args else None)
        super().__init__(*args[1:], **kwargs)

    def __missing__(self, key: Any) -> Any:
        return object.__getattribute__(self, "_default")

    @classmethod
    def fromDict(cls, value: Any, default: Any = None) -> Any:
        """A dictionary of which all inner ones have the default as well."""
        return munchify(value, lambda inner: cls(default, inner))


def munchify(value: Any, factory: Any = Munch) -> Any:
    """``value`` with what has attributes in the places of dictionaries."""
    if isinstance(value, dict):
        return factory({key: munchify(inner, factory) for key, inner in value.items()})
    if type(value) in (list, tuple):
        return type(value)(munchify(inner, factory) for inner in value)
    return value


def unmunchify(value: Any) -> Any:
    """``value`` with plain dictionaries."""
    if isinstance(value, dict):
        return {key: unmunchify(inner) for key, inner in value.items()}
    return type(value)(map(unmunchify, value)) if type(value) in (list, tuple) else value
