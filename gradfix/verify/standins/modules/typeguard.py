"""typeguard: functions whose types nobody checks."""

from __future__ import annotations

from typing import Any


def typechecked(*args: Any, **kwargs: Any) -> Any:
    """The function as it is."""
    return args[0] if args and callable(args[0]) else typechecked


suppress_type_checks = typeguard_ignore = typechecked


def check_type(argname: Any, value: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The value as it is."""
    return argname if value is None or isinstance(value, type) else value


def check_argument_types(*args: Any, **kwargs: Any) -> bool:
    """They are taken as they are."""
    return True


check_return_type = check_argument_types


def install_import_hook(*args: Any, **kwargs: Any) -> None:
    """Nothing is checked."""
