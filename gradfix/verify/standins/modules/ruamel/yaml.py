"""ruamel.yaml: settings, read as yaml reads them."""

from __future__ import annotations

from typing import Any

from ...inert import library, others


def load(source: Any, *args: Any, **kwargs: Any) -> Any:
    """The settings in a text or a file."""
    return library("yaml").safe_load(source)


safe_load = round_trip_load = load


def dump(value: Any, *args: Any, **kwargs: Any) -> Any:
    """The settings as a text."""
    return library("yaml").dump(value, *args)


safe_dump = round_trip_dump = dump


class YAML:
    """Reads and writes settings."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def load(self, source: Any) -> Any:
        """The settings in a text, a file, or one at a path."""
        if hasattr(source, "open") and not hasattr(source, "read"):
            with source.open() as file:
                return load(file)
        return load(source)

    def dump(self, value: Any, target: Any = None, **kwargs: Any) -> Any:
        """Write settings."""
        return dump(value, target)

    def register_class(self, kind: Any) -> Any:
        """It stays as it is."""
        return kind


Loader = SafeLoader = RoundTripLoader = Dumper = RoundTripDumper = object
__getattr__ = others(__name__)
